// What every client asks and what it must see: one run of two rounds, of which the client sees the answer alone.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

export const { BASE_URL, API_KEY } = process.env;
export const MODEL = 'support';
export const QUESTION = 'What is the weather in Oslo?';
export const ANSWER = 'It is -3 degrees in Oslo, and the sky is clear.';
// Both rounds together.
export const INPUT_TOKENS = 80;
export const OUTPUT_TOKENS = 18;

export const Weather = z.object({ city: z.string(), celsius: z.number().int() });
export const WEATHER = { city: 'Oslo', celsius: -3 };

export function equal(what, seen, expected) {
  if (isDeepStrictEqual(seen, expected)) return;
  console.error(`${what}\n  expected ${JSON.stringify(expected)}\n  seen     ${JSON.stringify(seen)}`);
  process.exit(1);
}
