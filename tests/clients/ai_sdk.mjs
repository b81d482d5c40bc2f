// The Vercel AI SDK with its provider for OpenAI-compatible servers: plain, stream, structured.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Output, generateText, streamText } from 'ai';
import { ANSWER, API_KEY, BASE_URL, INPUT_TOKENS, MODEL, OUTPUT_TOKENS, QUESTION, WEATHER, Weather, equal } from './expected.mjs';

const provider = createOpenAICompatible({
  name: 'toolgate', baseURL: BASE_URL, apiKey: API_KEY, includeUsage: true, supportsStructuredOutputs: true,
});
const request = { model: provider(MODEL), prompt: QUESTION, maxRetries: 0 };

function check({ text, toolCalls, finishReason, usage }) {
  equal('text', text, ANSWER);
  equal('tool calls', toolCalls, []);
  equal('finish reason', finishReason, 'stop');
  equal('usage', [usage.inputTokens, usage.outputTokens], [INPUT_TOKENS, OUTPUT_TOKENS]);
}

const parts = {
  async plain() {
    check(await generateText(request));
  },

  async stream() {
    const errors = [];
    const result = streamText({ ...request, onError: ({ error }) => errors.push(String(error)) });
    let text = '';
    for await (const piece of result.textStream) text += piece;
    equal('errors', errors, []);
    check({ text, toolCalls: await result.toolCalls, finishReason: await result.finishReason, usage: await result.usage });
  },

  async structured() {
    const { output } = await generateText({ ...request, output: Output.object({ schema: Weather }) });
    equal('parsed', output, WEATHER);
    const stream = streamText({ ...request, output: Output.object({ schema: Weather }) });
    let last;
    for await (const partial of stream.partialOutputStream) last = partial;
    equal('parsed from a stream', last, WEATHER);
  },
};
await parts[process.argv[2]]();
