import { Store } from './store';
import { sentence } from './words';

export type State =
  | 'unknown' // not asked yet
  | 'unreachable'
  | 'starting'
  | 'ready'
  | 'degraded'
  | 'restarting'
  | 'failed'
  | 'stopping';

/** What /health says. Members of `engine` that the server does not report are missing. */
export interface Health {
  state: State;
  reasons: string[];
  phase: string;
  model: string;
  restarts: number;
  engine: Record<string, unknown>;
}

export const health = new Store<Health>({
  state: 'unknown',
  reasons: [],
  phase: '',
  model: '',
  restarts: 0,
  engine: {},
});

const STATES: State[] = ['starting', 'ready', 'degraded', 'restarting', 'failed', 'stopping'];

export function healthFrom(body: Record<string, unknown>): Health {
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  const reasons = Array.isArray(body.reasons) ? body.reasons.filter((r) => typeof r === 'string') : [];
  return {
    state: STATES.find((state) => state === body.status) ?? 'unreachable',
    reasons,
    phase: text(body.phase),
    model: text(body.model),
    restarts: Number(body.restarts) || 0,
    engine: typeof body.engine === 'object' && body.engine ? { ...body.engine } : {},
  };
}

let timer: ReturnType<typeof setTimeout> | undefined;
let asking = false;

/** Asks now, and from then on: seldom while all is well, often while it is not. */
export async function followHealth(): Promise<void> {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  try {
    // 503 has the same body.
    const response = await fetch('health', { cache: 'no-store', signal: AbortSignal.timeout(8000) });
    health.set(healthFrom(await response.json()));
  } catch {
    health.update((last) => ({ ...last, state: 'unreachable', reasons: [], phase: '' }));
  }
  asking = false;
  timer = setTimeout(followHealth, health.value.state === 'ready' ? 10_000 : 2_000);
}

const WORDS: Record<State, string> = {
  unknown: 'Connecting',
  unreachable: 'Not reachable',
  starting: 'Starting',
  ready: 'Ready',
  degraded: 'Degraded',
  restarting: 'Restarting',
  failed: 'Failed',
  stopping: 'Stopping',
};

export function stateWord(state: State): string {
  return WORDS[state];
}

/** A sentence for people when something is not as it should be. */
export function trouble({ state, reasons, phase }: Health): string {
  const because = ' ' + sentence(reasons.filter(Boolean).join('; '));
  switch (state) {
    case 'unreachable':
      return 'The server cannot be reached. What you have here is kept; it is tried again every two seconds.';
    case 'starting':
      return `The server is loading its model${phase && phase !== 'ready' ? ` (${phase})` : ''}. Questions wait until it is ready.`;
    case 'degraded':
      return ('The server answers, but not all is well.' + because).trim();
    case 'restarting':
      return ('The engine is being started again. Questions wait for a moment.' + because).trim();
    case 'failed':
      return ('The engine has failed and stays off.' + because).trim();
    case 'stopping':
      return 'The server is shutting down.';
    default:
      return '';
  }
}
