import { request } from './api';
import { Store } from './store';

/** What /props says of the model and of the server's own settings; empty where it does not exist. */
export interface Props {
  defaults: Record<string, unknown>;
  /** Whether the chat template knows of it; undefined: not said. */
  thinking?: boolean;
  effort?: boolean;
  memoryPlan?: unknown;
}

export const props = new Store<Props>({ defaults: {} });

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

export function propsFrom(body: unknown): Props {
  const given = record(body);
  const template = record(given.chat_template);
  const flag = (value: unknown) => (typeof value === 'boolean' ? value : undefined);
  return {
    defaults: record(given.default_generation_settings),
    thinking: flag(template.enable_thinking),
    effort: flag(template.reasoning_effort),
    memoryPlan: given.memory_plan,
  };
}

/** Nobody waits for it, and nothing depends on it: a failure leaves what is known. */
export async function readProps(): Promise<void> {
  try {
    const response = await request('props', { signal: AbortSignal.timeout(5000) }, false);
    if (response.ok) props.set(propsFrom(await response.json()));
  } catch {
    // The next who asks may be luckier.
  }
}
