// The openai package for Node: plain, stream, structured, and a tool of its own.
import OpenAI, { toFile } from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import {
  ANSWER, API_KEY, BASE_URL, MODEL, OBJECT_QUESTION, PAGE_ANSWER, PAGE_ARGUMENTS, PAGE_QUESTION, PAGE_RESULT, QUESTION, WEATHER, Weather, equal,
  equalUsage,
} from './expected.mjs';

const client = new OpenAI({ baseURL: BASE_URL, apiKey: API_KEY, maxRetries: 0, timeout: 30_000 });
const about = (question) => ({ model: MODEL, messages: [{ role: 'user', content: question }] });
const request = about(QUESTION);
const parameters = { type: 'object', required: ['title'], properties: { title: { type: 'string' } } };
const tools = [{ type: 'function', function: { name: 'open_page', description: 'Opens a page.', parameters } }];

const parts = {
  async plain() {
    const { data, response } = await client.chat.completions.create(request).withResponse();
    equal('content', data.choices[0].message.content, ANSWER);
    equal('tool calls', data.choices[0].message.tool_calls, undefined);
    equal('finish reason', data.choices[0].finish_reason, 'stop');
    equalUsage([data.usage.prompt_tokens, data.usage.completion_tokens]);
    equal('status', response.headers.get('x-toolgate-status'), 'completed');
  },

  async stream() {
    const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    const completion = await stream.finalChatCompletion();
    equal('content', completion.choices[0].message.content, ANSWER);
    equal('tool calls', completion.choices[0].message.tool_calls, undefined);
    equal('finish reason', completion.choices[0].finish_reason, 'stop');
    equalUsage([completion.usage.prompt_tokens, completion.usage.completion_tokens]);
  },

  async structured() {
    const completion = await client.chat.completions.parse({ ...about(OBJECT_QUESTION), response_format: zodResponseFormat(Weather, 'weather') });
    equal('parsed', completion.choices[0].message.parsed, WEATHER);
  },

  async own_tool() {
    for (const stream of [false, true]) {
      const asked = { ...about(PAGE_QUESTION), tools };
      const { choices: [choice] } = await (stream
        ? client.chat.completions.stream(asked).finalChatCompletion()
        : client.chat.completions.create(asked));
      equal('finish reason', choice.finish_reason, 'tool_calls');
      equal('calls', choice.message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]), [['open_page', PAGE_ARGUMENTS]]);
      const answered = { role: 'tool', tool_call_id: choice.message.tool_calls[0].id, content: PAGE_RESULT };
      const last = await client.chat.completions.create({ ...asked, messages: [...asked.messages, choice.message, answered] });
      equal('content', last.choices[0].message.content, PAGE_ANSWER);
    }
  },

  async other_paths() {
    const answer = await client.embeddings.create({ model: MODEL, input: ['Oslo'], encoding_format: 'float' });
    equal('vector', answer.data[0].embedding, [0.5, -0.25, 1]);
    equal('model', answer.model, MODEL);
    const picture = await client.images.generate({ model: MODEL, prompt: 'Oslo', response_format: 'b64_json' });
    equal('picture', picture.data[0].b64_json, 'T3Nsbw==');
    const speech = await client.audio.speech.create({ model: MODEL, voice: 'alloy', input: 'Oslo' });
    equal('speech', await speech.text(), 'Oslo');
    // The file goes first here, and is longer than what is kept of a form in memory.
    const file = await toFile(Buffer.from('\r\n--sound'.repeat(300_000)), 'oslo.wav');
    equal('heard', (await client.audio.transcriptions.create({ file, model: MODEL })).text, 'Oslo');
  },
};
await parts[process.argv[2]]();
