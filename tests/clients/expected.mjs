// What every client asks and what it must see: one run of two rounds, of which the client sees the answer alone.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

export const { BASE_URL, API_KEY } = process.env;
export const MODEL = 'support';
export const QUESTION = 'What is the weather in Oslo?';
// The same, for an answer that is parsed, and for one that needs a tool of the client's own beside the gateway's.
export const OBJECT_QUESTION = 'What is the weather in Oslo, as an object?';
export const PAGE_QUESTION = 'Open a page with the weather in Oslo.';
export const PAGE_ARGUMENTS = { title: 'Oslo: -3 degrees' };
export const PAGE_RESULT = 'The page is open.';
export const PAGE_ANSWER = 'The page shows -3 degrees.';
export const ANSWER = 'It is -3 degrees in Oslo, and the sky is clear.';
// Both rounds together.
export const INPUT_TOKENS = 80;
export const OUTPUT_TOKENS = 18;
// An upstream that counts nothing leaves the counting to the gateway.
const COUNTED = process.env.UPSTREAM_COUNTS !== 'no';

export const Weather = z.object({ city: z.string(), celsius: z.number().int() });
export const WEATHER = { city: 'Oslo', celsius: -3 };

export function equal(what, seen, expected) {
  if (isDeepStrictEqual(seen, expected)) return;
  console.error(`${what}\n  expected ${JSON.stringify(expected)}\n  seen     ${JSON.stringify(seen)}`);
  process.exit(1);
}

export function equalUsage(seen) {
  if (COUNTED) equal('usage', seen, [INPUT_TOKENS, OUTPUT_TOKENS]);
  else equal('something is counted', seen.every((tokens) => tokens > 0), true);
}
