// The Vercel AI SDK with its provider for OpenAI-compatible servers: plain, stream, structured, and a tool of its own.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Output, generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import {
  ANSWER, API_KEY, BASE_URL, MODEL, OBJECT_QUESTION, PAGE_ANSWER, PAGE_ARGUMENTS, PAGE_QUESTION, PAGE_RESULT, QUESTION, WEATHER, Weather, equal,
  equalUsage,
} from './expected.mjs';

const provider = createOpenAICompatible({
  name: 'toolgate', baseURL: BASE_URL, apiKey: API_KEY, includeUsage: true, supportsStructuredOutputs: true,
});
const request = { model: provider(MODEL), prompt: QUESTION, maxRetries: 0 };

function check({ text, toolCalls, finishReason, usage }) {
  equal('text', text, ANSWER);
  equal('tool calls', toolCalls, []);
  equal('finish reason', finishReason, 'stop');
  equalUsage([usage.inputTokens, usage.outputTokens]);
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
    const asked = { ...request, prompt: OBJECT_QUESTION, output: Output.object({ schema: Weather }) };
    const { output } = await generateText(asked);
    equal('parsed', output, WEATHER);
    const stream = streamText(asked);
    let last;
    for await (const partial of stream.partialOutputStream) last = partial;
    equal('parsed from a stream', last, WEATHER);
  },

  async own_tool() {
    const seen = [];
    const open_page = tool({
      description: 'Opens a page.',
      inputSchema: z.object({ title: z.string() }),
      execute: (page) => (seen.push(page), PAGE_RESULT),
    });
    const asked = { ...request, prompt: PAGE_QUESTION, tools: { open_page }, stopWhen: stepCountIs(3) };
    equal('text', (await generateText(asked)).text, PAGE_ANSWER);
    const errors = [];
    const stream = streamText({ ...asked, onError: ({ error }) => errors.push(String(error)) });
    let text = '';
    for await (const piece of stream.textStream) text += piece;
    equal('errors', errors, []);
    equal('text of a stream', text, PAGE_ANSWER);
    equal('pages', seen, [PAGE_ARGUMENTS, PAGE_ARGUMENTS]);
  },
};
await parts[process.argv[2]]();
