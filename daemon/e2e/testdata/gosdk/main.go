// Command gosdk sends one streaming request through a Go SDK and prints the
// answer's text. It is a module of its own: no SDK is a dependency of gettierd.
//
//	gosdk go-openai|anthropic-sdk-go BASE_URL PROMPT
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	openai "github.com/sashabaranov/go-openai"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: gosdk go-openai|anthropic-sdk-go BASE_URL PROMPT")
		os.Exit(2)
	}
	run := viaOpenAI
	if os.Args[1] == "anthropic-sdk-go" {
		run = viaAnthropic
	}
	text, err := run(context.Background(), os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(text)
}

func viaOpenAI(ctx context.Context, base, prompt string) (text string, err error) {
	c := openai.DefaultConfig("dummy")
	c.BaseURL = base + "/v1"
	s, err := openai.NewClientWithConfig(c).CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model: "m", Stream: true, Messages: []openai.ChatCompletionMessage{{Role: "user", Content: prompt}},
	})
	if err != nil {
		return "", err
	}
	defer s.Close()
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return text, err
		}
		for _, ch := range r.Choices {
			text += ch.Delta.Content
		}
	}
}

func viaAnthropic(ctx context.Context, base, prompt string) (string, error) {
	c := anthropic.NewClient(option.WithBaseURL(base), option.WithAPIKey("dummy"), option.WithMaxRetries(0))
	s := c.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
		Model: "m", MaxTokens: 1000, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
	})
	defer s.Close()
	var m anthropic.Message
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			return "", err
		}
	}
	if err := s.Err(); err != nil {
		return "", err
	}
	text := ""
	for _, b := range m.Content {
		text += b.Text
	}
	return text, nil
}
