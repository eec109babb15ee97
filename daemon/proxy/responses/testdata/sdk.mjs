// Reads the answers of a server as the official clients do and prints what they
// made of each: node sdk.mjs URL NAME…
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, base, ...names] = process.argv.slice(2);
const require = createRequire(modules + "/x.js");
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);

const { default: OpenAI } = await load("openai");
const tools = [{ type: "function", name: "shell", strict: false, parameters: { type: "object", properties: {} } }];
let ai, provider;
try {
  ai = await load("ai");
  provider = (await load("@ai-sdk/openai")).createOpenAI({ apiKey: "none", baseURL: base + "/v1" });
} catch {}

// Some errors recite a whole schema.
const say = (name, how, text, calls) => console.log(JSON.stringify({ name, how, text: text.slice(0, 300), calls }));
const ofResponse = (r) => [r.output_text, r.output.filter((i) => i.type === "function_call").map((i) => i.name + i.arguments)];

for (const name of names) {
  const client = new OpenAI({ apiKey: "none", baseURL: base + "/v1", maxRetries: 0, defaultHeaders: { "x-case": name } });
  const body = { model: "m", input: "hi", tools, store: false };
  if (name.startsWith("whole ")) {
    say(name, "create", ...ofResponse(await client.responses.create(body)));
    continue;
  }
  try {
    const stream = client.responses.stream(body);
    let deltas = "";
    stream.on("response.output_text.delta", (e) => (deltas += e.delta));
    const final = await stream.finalResponse();
    if (final.status === "failed") throw new Error(final.error.message);
    const [text, calls] = ofResponse(final);
    if (deltas !== text) throw new Error(`deltas say ${JSON.stringify(deltas)}, the end ${JSON.stringify(text)}`);
    say(name, "stream", text, calls);
  } catch (e) {
    say(name, "stream", "error: " + e.message, []);
  }
  if (!ai) continue;
  let failed = "";
  const r = ai.streamText({
    model: provider("m"), prompt: "hi", headers: { "x-case": name }, maxRetries: 0,
    onError: ({ error }) => (failed = error?.message ?? JSON.stringify(error)),
    tools: { shell: ai.tool({ inputSchema: ai.jsonSchema({ type: "object", properties: {} }) }) },
  });
  try {
    await r.consumeStream();
    say(name, "ai", failed ? "error: " + failed : await r.text, failed ? [] : (await r.toolCalls).map((c) => c.toolName + JSON.stringify(c.input)));
  } catch (e) {
    say(name, "ai", "error: " + (failed || e.message), []);
  }
}
