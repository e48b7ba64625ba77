import { Failure, failureOf, request } from '../base/api';
import { health, healthFrom } from '../base/health';
import { props, readProps } from '../base/props';
import { Store } from '../base/store';
import { SPAN_SECONDS } from './chart';
import { parseMetrics, type Sample } from './metrics';
import { slotsFrom, waitingFrom, type Slot, type Wait } from './slots';

/** What the monitor shows, and the last two minutes of it. */
export interface Feed {
  samples: Sample[];
  /** null: the server has no such list. */
  slots: Slot[] | null;
  /** Requests that wait for a slot, oldest first, as far as the server lists them. */
  waiting: Wait[];
  /** Why there are no new figures; null: there are. */
  problem: Failure | null;
}

export const feed = new Store<Feed>({ samples: [], slots: null, waiting: [], problem: null });

const EVERY_MS = 1_000;

/** The engine whose plan is known, by the number of restarts; -1: it has told none yet. */
let planOf = -1;

/** Paths that this server does not have; asked again when its engine was away. */
const missing = new Set<string>();

function quietly(path: string): Promise<Response> {
  return request(path, { signal: AbortSignal.timeout(5000) }, false);
}

async function optional(path: string): Promise<unknown> {
  if (missing.has(path)) return undefined;
  const response = await quietly(path);
  // 501: there, and switched off.
  if ([404, 405, 501].includes(response.status)) missing.add(path);
  return response.ok ? response.json() : undefined;
}

async function sample(): Promise<void> {
  const answered = await fetch('health', { cache: 'no-store', signal: AbortSignal.timeout(5000) });
  health.set(healthFrom(await answered.json()));
  const response = await quietly('metrics');
  if (!response.ok) throw await failureOf(response);
  const rows = parseMetrics(await response.text());
  const at = performance.now();
  const list = await optional('slots');
  // What the server was started with does not change while it runs; the plan is of an engine, and
  // is null until that is ready.
  const isNew = feed.value.problem !== null || feed.value.samples.length === 0;
  const { restarts, state } = health.value;
  if (isNew || planOf !== restarts) {
    await readProps();
    const isComing = props.value.memoryPlan === null || state !== 'ready';
    planOf = isComing ? -1 : restarts;
  }
  feed.update((last) => ({
    samples: [...last.samples, { at, rows }].filter((each) => at - each.at <= SPAN_SECONDS * 1000),
    slots: slotsFrom(list),
    waiting: waitingFrom(list),
    problem: null,
  }));
}

/** Asks every second until the returned function is called; not while nobody can see it. */
export function followFeed(): () => void {
  let timer: ReturnType<typeof setTimeout>;
  let over = false;
  const next = async () => {
    try {
      if (!document.hidden) await sample();
    } catch (error) {
      const gone = new Failure('unreachable', 'The server cannot be reached.');
      const problem = error instanceof Failure ? error : gone;
      missing.clear();
      feed.update((last) => ({ ...last, problem }));
      if (problem === gone) health.update((last) => ({ ...last, state: 'unreachable' }));
    }
    if (!over) timer = setTimeout(next, EVERY_MS);
  };
  void next();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}
