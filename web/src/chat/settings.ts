import { keep, recall } from '../base/local';
import { Store } from '../base/store';

/** A number of a request. What is left empty is not sent, and the server's own setting holds. */
export interface NumberField {
  name: string;
  label: string;
  hint: string;
  min: number;
  max: number;
  /** `min` itself is not allowed. */
  above?: boolean;
  whole?: boolean;
}

export const NUMBER_FIELDS: readonly NumberField[] = [
  { name: 'temperature', label: 'Temperature', hint: '0 always takes the likeliest token', min: 0, max: 100 },
  { name: 'top_p', label: 'Top-p', hint: 'the likeliest tokens that make up this share; 1 is off', min: 0, max: 1, above: true },
  { name: 'top_k', label: 'Top-k', hint: 'only that many of the likeliest tokens; 0 is off', min: 0, max: 2 ** 31 - 1, whole: true },
  { name: 'min_p', label: 'Min-p', hint: 'least probability, as a share of the likeliest; 0 is off', min: 0, max: 1 },
  { name: 'presence_penalty', label: 'Presence penalty', hint: 'against tokens that occurred', min: -2, max: 2 },
  { name: 'frequency_penalty', label: 'Frequency penalty', hint: 'more against frequent ones', min: -2, max: 2 },
  { name: 'repetition_penalty', label: 'Repetition penalty', hint: 'a factor; 1 is off', min: 0.000001, max: 1e6 },
  { name: 'seed', label: 'Seed', hint: 'the same seed gives the same answer', min: 0, max: Number.MAX_SAFE_INTEGER, whole: true },
  { name: 'reasoning_budget', label: 'Thinking budget', hint: 'tokens; then it has to answer', min: 0, max: 2 ** 31 - 1, whole: true },
  { name: 'max_tokens', label: 'Most tokens', hint: 'of an answer, thoughts included', min: 1, max: 2 ** 31 - 1, whole: true },
];

export interface Settings {
  system: string;
  thinking: '' | 'on' | 'off';
  effort: '' | 'low' | 'medium' | 'high';
  /** One a line; \n and \t stand for a line break and a tab. */
  stop: string;
  /** JSON, a list of function tools as the API takes them. */
  tools: string;
  /** By name, as they were typed. */
  numbers: Record<string, string>;
}

export const NO_SETTINGS: Settings = { system: '', thinking: '', effort: '', stop: '', tools: '', numbers: {} };

export const settings = new Store<Settings>(readSettings(recall('settings')));

export function setSettings(value: Settings): void {
  settings.set(value);
  keep('settings', JSON.stringify(value));
}

export function readSettings(text: string | null): Settings {
  try {
    const { system, thinking, effort, stop, tools, numbers } = JSON.parse(text ?? '{}');
    const word = <T extends string>(value: unknown, words: readonly T[]): T | '' =>
      words.includes(value as T) ? (value as T) : '';
    const known = NUMBER_FIELDS.map(({ name }) => [name, numbers?.[name]] as const);
    return {
      system: typeof system === 'string' ? system : '',
      thinking: word(thinking, ['on', 'off']),
      effort: word(effort, ['low', 'medium', 'high']),
      stop: typeof stop === 'string' ? stop : '',
      tools: typeof tools === 'string' ? tools : '',
      numbers: Object.fromEntries(known.filter(([, text]) => typeof text === 'string')),
    };
  } catch {
    return NO_SETTINGS;
  }
}

/** What is wrong with a number as typed; empty: nothing. */
export function problemOf(field: NumberField, typed: string): string {
  const text = typed.trim();
  if (text === '') return '';
  const value = Number(text);
  if (!Number.isFinite(value)) return 'is not a number';
  if (field.whole && !Number.isInteger(value)) return 'has to be a whole number';
  if (value < field.min || (field.above && value === field.min))
    return field.above ? `has to be above ${field.min}` : `has to be at least ${field.min}`;
  return value > field.max ? `has to be at most ${field.max}` : '';
}

export const MAX_STOPS = 16;

export function stopsOf(typed: string): string[] {
  const unescape = (line: string) =>
    line.replace(/\\([nt\\])/g, (_, c: string) => ({ n: '\n', t: '\t' })[c] ?? '\\');
  return typed.split('\n').filter(Boolean).map(unescape);
}

/** The tools as typed; `problem` says what is wrong, then there are none. */
export function toolsOf(typed: string): { tools: unknown[]; problem: string } {
  if (!typed.trim()) return { tools: [], problem: '' };
  try {
    const given: unknown = JSON.parse(typed);
    const tools = Array.isArray(given) ? given : [given];
    const named = tools.every((tool) => typeof tool?.function?.name === 'string');
    return named ? { tools, problem: '' } : { tools: [], problem: 'A tool has no function.name.' };
  } catch (error) {
    return { tools: [], problem: (error as Error).message };
  }
}

/** The fields of a request. What makes no sense is left out; its field says so. */
export function requestFields(value: Settings): Record<string, unknown> {
  const { thinking, effort, stop, numbers } = value;
  const fields: Record<string, unknown> = {};
  for (const field of NUMBER_FIELDS) {
    const typed = numbers[field.name]?.trim();
    if (typed && !problemOf(field, typed)) fields[field.name] = Number(typed);
  }
  const stops = stopsOf(stop);
  if (stops.length > 0) fields.stop = stops.slice(0, MAX_STOPS);
  const { tools } = toolsOf(value.tools);
  if (tools.length > 0) fields.tools = tools;
  if (thinking) fields.chat_template_kwargs = { enable_thinking: thinking === 'on' };
  if (effort) fields.reasoning_effort = effort;
  return fields;
}

/** How many settings differ from those of the server. */
export function changedCount(value: Settings): number {
  const fields = requestFields(value);
  return Object.keys(fields).length + (value.system.trim() ? 1 : 0);
}
