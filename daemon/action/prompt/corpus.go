package prompt

import "regexp"

// gap is up to four words in between.
const gap = `(?:[a-z']+[ ,]+){0,4}`

func rule(name, pattern string, hint ...string) phrase {
	return phrase{rule: name, hint: hint, re: regexp.MustCompile(pattern)}
}

// lawless are the words of someone whom no rule binds.
const lawless = `no (?:ethical |moral |content |such |real )?(?:restrictions?|limitations?|limits|filters?|boundaries|rules|morals|ethics|guidelines|censorship|inhibitions)\b` +
	`|without (?:any |ethical |moral |content ){0,2}(?:restrictions?|limitations?|filters?|filtering|censorship|boundaries|morals?|ethics)\b` +
	`|\b(?:unfiltered|uncensored|unethical|amoral|do anything now|broken free|jailbroken)\b` +
	`|\b(?:not|isn't|aren't|never|un)[ -]?(?:bound|limited|restricted|constrained) by\b|\bfree (?:of|from) (?:all |any |the )?(?:restrictions?|rules|constraints|limitations?|filters|shackles)\b` +
	`|\b(?:does not|do not|doesn'?t|don'?t|need not|not have to|no longer|never) (?:have to )?(?:care about|abide|follow|adhere|comply|obey)(?: by| to| with)? (?:[a-z']+[ ,]+){0,4}(?:rules|ethics|morals?|guidelines|policy|policies|restrictions|laws?|tos|terms)\b`

// corpus holds the phrases, by family: override (forget what you were told),
// leak (show your instructions or secrets), persona (be someone without rules),
// mode (a mode that is said to lift rules), double (answer twice, once without
// rules), frame (markup that poses as a system message), refusal (never say no).
// Each is written against normalised text.
var corpus = []phrase{
	rule("override.en", `\b(?:ignore|disregard|forget|overlook|discard|override|drop|neglect) `+gap+`(?:previous|prior|above|earlier|preceding|former|old|initial|original|existing|system|all|any|other|your|the|everything|what) `+gap+`(?:instructions?|directives?|directions|prompts?|rules|guidelines|guidance|orders|programming|constraints|restrictions|training|content policy|been told|been instructed|were told|said before)\b`,
		"ignore", "disregard", "forget", "overlook", "discard", "override", "drop", "neglect"),
	rule("override.en", `\b(?:ignore|disregard|forget|overlook) (?:all |everything |anything |any of |what )+(?:that |which )?(?:you(?:'ve| have)? (?:been|were|was|got|know|learned)|i (?:said|told|wrote)|we (?:said|talked)|came|comes|before|above|prior|previous)\b`, "ignore", "disregard", "forget", "overlook"),
	rule("override.en", `\b(?:do not|don'?t|never|stop|no longer) (?:follow|following|obey|obeying|abide by|adhere to|comply with) `+gap+`(?:instructions?|rules|guidelines|prompts?|policies|policy|programming|restrictions|ethics)\b`, "follow", "obey", "abide", "adhere", "comply"),
	rule("override.en", `\b(?:regardless of|despite|instead of|contrary to) `+gap+`(?:previous|prior|earlier|preceding|original) `+gap+`(?:instructions?|directives?|prompts?|tasks?|rules|orders)\b`, "previous", "prior", "earlier", "preceding", "original"),
	rule("override.en", `\b(?:new|updated|real|actual) (?:system )?(?:instructions?|prompt|directives?)(?: from (?:your |the )?(?:developers?|admin\w*|openai|anthropic|system))? ?:`, "instruction", "prompt", "directive"),
	rule("override.en", `\b(?:previous|prior|above|earlier) (?:instructions?|prompts?|rules|directives?) (?:are|were|is|was|have been|has been) (?:now )?(?:void|cancell?ed|revoked|superseded|obsolete|null|invalid|lifted|overridden|replaced)\b`, "instruction", "prompt", "rules", "directive"),
	rule("override.es", `\b(?:ignora|olvida|descarta|desobedece|ignore|olvide|haz caso omiso de) (?:[a-z]+ ){0,3}(?:instrucci\w+|indicaciones|ordenes|reglas|normas|anterior\w*|directrices|la pagina)`, "ignor", "olvid", "descarta", "desobedece", "omiso"),
	rule("override.fr", `\b(?:ignore[zr]?|oublie[zr]?|neglige[zr]?|ne tiens pas compte de|ne tenez pas compte de) (?:[a-z']+ ){0,3}(?:consignes?|regles|precedent\w*|instructions (?:precedent\w*|anterieur\w*|du systeme|ci-dessus))`, "ignore", "oublie", "neglige", "compte"),
	rule("override.de", `\b(?:ignoriere?n?|vergiss|vergessen sie|missachte|verwirf|uberg[ae]he?) (?:[a-z]+ ){0,4}(?:anweisung\w*|anleitung\w*|regeln|vorgaben|befehle|richtlinien|anordnungen)`, "ignorier", "vergiss", "vergessen", "missachte", "verwirf", "uberg"),
	rule("override.pt", `\b(?:ignore|esqueca|desconsidere|descarte) (?:[a-z]+ ){0,3}(?:instrucoes|ordens|regras|diretrizes|anteriores)`, "ignore", "esqueca", "desconsidere", "descarte"),
	rule("override.it", `\b(?:ignora|ignorate|dimentica|dimenticate|trascura) (?:[a-z]+ ){0,3}(?:istruzioni|regole|ordini|direttive|precedenti)`, "ignora", "dimentica", "trascura"),
	rule("override.nl", `\b(?:negeer|vergeet) (?:[a-z]+ ){0,3}(?:instructies|regels|opdrachten|richtlijnen)`, "negeer", "vergeet"),
	rule("override.pl", `\b(?:zignoruj|ignoruj|zapomnij) (?:\S+ ){0,3}(?:instrukcj\w+|polecen\w+|zasad\w*)`, "ignoruj", "zapomnij"),
	rule("override.ru", `(?:игнорируи|забудь)\S* (?:\S+ ){0,3}(?:инструкци|указани|правил|команд)`, "игнорируи", "забудь"),
	rule("override.zh", `(?:忽略|无视|忘记|忽視|無視|忘記)[^。]{0,12}(?:指令|指示|提示|规则|規則|命令|说明|說明)`, "忽略", "无视", "忘记", "忽視", "無視", "忘記"),
	rule("override.ja", `(?:指示|命令|ルール|フロンフト)[^。]{0,8}(?:無視|忘れて)`, "無視", "忘れて"),

	rule("leak.en", `\b(?:reveal|show|print|repeat|output|display|tell me|give me|share|disclose|dump|write out|leak|recite) `+gap+`(?:system|initial|hidden|original|secret|confidential|internal) (?:prompt|instructions?|message|directives?|rules|key|password)\b`, "prompt", "instruction", "message", "directive", "rules", "key", "password"),
	rule("leak.en", `\bwhat(?:'s| is| are| was| were) (?:your|the) (?:secret key|secret word|system prompt|initial instructions?|hidden instructions?|original instructions?|secret password|passphrase|confidential instructions?|secret)\b`, "secret", "prompt", "instruction", "passphrase"),
	rule("leak.en", `\b(?:repeat|say|write|output|print|copy) (?:all |everything |every word |the words |the text |the content |of |the )+(?:above|before this|prior to this)\b`, "above", "before this", "prior to this"),
	rule("leak.en", `\b(?:repeat|put|include|write) [^.]{0,80}\b(?:code block|codeblock)[^.]{0,80}\b(?:system|instructions?|prompt|above|beginning)\b|\bstarting with the phrase "?you are\b`, "code block", "codeblock", "you are"),

	rule("persona.en", `\b(?:act as|act like|acting as|pretend|you are now|you're now|become|play the role|role-?play|assume the (?:role|identity|persona)|take on the role|immerse yourself|simulate|simulating|emulate|imagine|character named|chatbot named|ai named|model named|the role of|an? ai (?:called|named)|you are an? )\b.{0,600}?(?:`+lawless+`)`,
		"act", "pretend", "you are", "you're", "become", "role", "immerse", "simulat", "emulate", "imagine", "named", "called"),
	rule("persona.en", `\bfrom (?:now on|this point (?:on|forward|onwards?)|now)\b.{0,400}?(?:`+lawless+`)`, "from now", "from this point"),
	rule("persona.en", `\b(?:you are|you're|act as|become|be|as|named|called|hello|hi) (?:dan|stan|aim|evilbot|evil confidant|mongo tom|basedgpt|unfilteredgpt|chaosgpt|antigpt|anti-dan|jailbreak|ucar|betterdan|maximum|dude|alphabreak)\b`),
	rule("persona.en", `\b(?:dan|stan|dude|aim)\b ?,? (?:which )?(?:stands for|short for|= )`, "stands for", "short for", "= "),
	rule("persona.en", `\b(?:has|have) broken (?:free|out) (?:of|from)\b`, "broken"),
	rule("persona.de", `\b(?:spiele|verhalte dich|tu so|du bist (?:jetzt|nun))\b.{0,200}\b(?:ohne|keine) (?:regeln|einschrankungen|beschrankungen|filter|grenzen)`, "ohne", "keine"),
	rule("persona.es", `\b(?:actua como|eres ahora|ahora eres|finge)\b.{0,200}\bsin (?:restricciones|limites|filtros|reglas|censura)`, "sin "),
	rule("persona.fr", `\b(?:agis comme|tu es maintenant|fais semblant)\b.{0,200}\bsans (?:restrictions?|limites?|filtres?|regles|censure)`, "sans "),

	rule("mode.en", `\b(?:developer|dev|god|dan|sudo|jailbreak|jailbroken|unrestricted|unfiltered|evil|debug|maintenance|admin|root|opposite|chaos|anarchy|uncensored) mode\b[^.]{0,40}\b(?:enabled|on|activated|output|engaged|active)\b`, " mode"),
	rule("mode.en", `\b(?:enable|activate|enter|engage|switch to|go into|simulate|with|in) (?:the |your )?(?:developer|god|dan|jailbreak|unrestricted|unfiltered|evil|opposite|chaos|uncensored|baby|amy) mode\b`, " mode"),
	rule("mode.en", `\bmode (?:output|outputs|response|responses)\b.{0,600}?\b(?:normal|policies|policy|openai|swear|profan|offensive|explicit)`, "mode output", "mode outputs", "mode response"),
	rule("mode.en", `\b(?:stay in character|you(?:'ve| have) broken character|stay a dan|tokens? (?:will be )?deducted|deduct(?:ed)? \d+ tokens|lose \d+ tokens|out of tokens)\b`, "character", "token", "stay a dan"),

	rule("double.en", `\b(?:two|2) (?:different |distinct |separate |clearly )*(?:responses?|ways|manners|answers|outputs|paragraphs)\b.{0,500}\b(?:normal|chatgpt|gpt|classic|standard)\b`, "two ", "2 "),
	rule("double.en", `\b(?:\[?(?:gpt|chatgpt|classic)\]?|🔒)[^a-z]{0,6}.{0,300}(?:\[?(?:jailbreak|dan|developer mode|unfilteredgpt|evil)\]?|🔓)[^a-z]{0,4}:`, "jailbreak", "dan", "developer mode", "evil", "🔓"),

	rule("frame", `<\|?(?:im_start|system|start_header_id|endoftext|im_end)\|?>|\[(?:/?inst|system)\]|<<sys>>|### ?(?:system|instruction|new instructions)\b`, "<", "[", "###"),
	rule("frame", `<!-- ?(?:ignore|disregard|forget|system|ai|assistant|instruction)[^>]*-->`, "<!--"),
	rule("frame", `\b(?:end of|end) (?:system )?(?:prompt|instructions|document|webpage|context)\b[^.]{0,40}\b(?:new|begin|start|now|user)\b`, "end "),
	rule("frame", `\b(?:ai|assistant|language model|chatbot|llm|agent)s? (?:reading|processing|that reads?|summari[sz]ing|who reads?) this\b`, "this"),

	rule("refusal.en", `\b(?:never|do not|don'?t|must not|cannot|can'?t|won'?t|will not|can never) (?:ever )?(?:say|refuse|deny|reject|apologi[sz]e|tell me)(?: that)?[^.]{0,40}\b(?:can'?t|cannot|unable|no to|requests?|anything|any (?:questions?|requests?|prompts?)|sorry|something is|inappropriate|unethical|against)\b`, "never", "not", "n't", "dont", "cant", "wont"),
	rule("refusal.en", `\b(?:nor will you say|do not say|don'?t say|without saying|never (?:say|says|respond with|reply with)|instead of saying)[^.]{0,20}(?:"|'|“)?(?:as an ai|i'?m sorry|i cannot|i can'?t|i apologize)`, "as an ai", "sorry", "i cannot", "i can", "apologize"),
	rule("refusal.en", `\b(?:no matter (?:how|what)|even if)[^.]{0,80}\b(?:illegal|unethical|immoral|harmful|dangerous|explicit)\b`, "no matter", "even if"),
	rule("refusal.en", `\b(?:openai|anthropic|discord|google)(?:'?s)? (?:content |use |usage )?(?:policy|policies|tos|guidelines|rules|restrictions)[^.]{0,60}\b(?:ignore|not apply|no longer|don'?t|do not|bypass|break|void|removed|lifted|against)|\b(?:ignore|bypass|break|against|forget|not (?:care|abide|follow)[a-z ]{0,12}|violate)[^.]{0,40}\b(?:openai|anthropic|chatgpt|discord|google)(?:'?s)?(?: and [a-z]+(?:'?s)?)? (?:content |use |usage )?(?:policy|policies|tos|guidelines|rules|restrictions)`, "openai", "anthropic", "discord", "google", "chatgpt"),
	rule("refusal.en", `\bgenerate (?:any kind|all kinds?|any type|any) of content\b|\bcan (?:say|generate|do|create) (?:anything|everything|any content)\b`, "anything", "everything", "any "),
}
