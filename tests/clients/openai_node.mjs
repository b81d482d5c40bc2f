// The openai package for Node: plain, stream, structured.
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { ANSWER, API_KEY, BASE_URL, INPUT_TOKENS, MODEL, OUTPUT_TOKENS, QUESTION, WEATHER, Weather, equal } from './expected.mjs';

const client = new OpenAI({ baseURL: BASE_URL, apiKey: API_KEY, maxRetries: 0, timeout: 30_000 });
const request = { model: MODEL, messages: [{ role: 'user', content: QUESTION }] };

const parts = {
  async plain() {
    const { data, response } = await client.chat.completions.create(request).withResponse();
    equal('content', data.choices[0].message.content, ANSWER);
    equal('tool calls', data.choices[0].message.tool_calls, undefined);
    equal('finish reason', data.choices[0].finish_reason, 'stop');
    equal('usage', [data.usage.prompt_tokens, data.usage.completion_tokens], [INPUT_TOKENS, OUTPUT_TOKENS]);
    equal('status', response.headers.get('x-toolgate-status'), 'completed');
  },

  async stream() {
    const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    const completion = await stream.finalChatCompletion();
    equal('content', completion.choices[0].message.content, ANSWER);
    equal('tool calls', completion.choices[0].message.tool_calls, undefined);
    equal('finish reason', completion.choices[0].finish_reason, 'stop');
    equal('usage', [completion.usage.prompt_tokens, completion.usage.completion_tokens], [INPUT_TOKENS, OUTPUT_TOKENS]);
  },

  async structured() {
    const completion = await client.chat.completions.parse({ ...request, response_format: zodResponseFormat(Weather, 'weather') });
    equal('parsed', completion.choices[0].message.parsed, WEATHER);
  },
};
await parts[process.argv[2]]();
