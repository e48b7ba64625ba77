import { useEffect } from 'preact/hooks';
import { keyWanted } from '../base/api';
import { health, stateWord, type Health } from '../base/health';
import { props } from '../base/props';
import { useStore } from '../base/store';
import { bytes, count, duration, percent, rate, sentence, whole } from '../base/words';
import { Card } from './card';
import { Chart } from './chart';
import { feed, followFeed } from './feed';
import { MemoryPicture } from './memory';
import { growth, share, total, type Row, type Sample } from './metrics';
import { NAMES } from './names';
import { placeFromProcess, placesFrom } from './plan';
import { Requests } from './requests';
import { waitsFrom, type Wait } from './slots';
import { Totals } from './totals';

export function Monitor() {
  useEffect(followFeed, []);
  const state = useStore(feed);
  const now = useStore(health);
  const last = state.samples.at(-1);
  return (
    <div class="monitor">
      {state.problem && (
        <p class="banner degraded" role="status">
          {sentence(state.problem.message)} {last && 'The figures below are the last ones.'}
          {state.problem.kind === 'key' && (
            <button type="button" class="small" onClick={() => keyWanted.set(true)}>
              API key…
            </button>
          )}
        </p>
      )}
      <div class={state.problem ? 'cards old' : 'cards'}>
        <Summary health={now} />
        {last && <Speed samples={state.samples} />}
        {last && <Requests state={state} rows={last.rows} />}
        {last && <Work health={now} waiting={state.waiting} rows={last.rows} />}
        {last && <Shares samples={state.samples} />}
        {last && <Memory rows={last.rows} />}
        {last && <Totals rows={last.rows} />}
      </div>
      {!last && !state.problem && <p class="hint center">Asking the server…</p>}
    </div>
  );
}

function Summary({ health }: { health: Health }) {
  const context = Number(health.engine.context_length) || 0;
  return (
    <Card title="Server" wide>
      <p class="headline">
        <span class={`dot ${health.state}`} /> {stateWord(health.state)}
        {health.model && <span class="model">{health.model}</span>}
      </p>
      <p class="hint">
        {[
          context > 0 && `context of ${count(context, 'token')}`,
          health.restarts > 0 && `engine started again ${count(health.restarts, 'time')}`,
          health.phase && health.phase !== health.state && `phase: ${health.phase}`,
          ...health.reasons,
        ]
          .filter(Boolean)
          .join(' · ')}
      </p>
    </Card>
  );
}

/** Over two seconds, so that a pulse more or less is no jump. */
function rates(samples: Sample[], name: string): (number | undefined)[] {
  return samples.map((sample, i) => growth(samples[Math.max(0, i - 2)], sample, name));
}

function Speed({ samples }: { samples: Sample[] }) {
  const rows = [
    ['Answers', NAMES.answerTokens],
    ['Prompts', NAMES.promptTokens],
  ] as const;
  return (
    <>
      {rows.map(([title, name]) => {
        const values = rates(samples, name);
        const end = samples.at(-1)!.at;
        const points = values.map((value, i) => ({ ago: (end - samples[i]!.at) / 1000, value }));
        if (total(samples.at(-1)!.rows, name) === undefined) return null;
        const now = values.at(-1) ?? 0;
        const most = Math.max(0, ...values.filter((value) => value !== undefined));
        return (
          <Card title={title}>
            <p class="figure">
              {rate(now)} <small>tokens/s</small>
            </p>
            <Chart points={points} label={`${title}: tokens a second, two minutes`} />
            <p class="hint">at most {rate(most)} in the last two minutes</p>
          </Card>
        );
      })}
    </>
  );
}

function Work(props: { health: Health; waiting: Wait[]; rows: Row[] }) {
  const { health, waiting, rows } = props;
  const seconds = total(rows, NAMES.stepSeconds);
  if (seconds === undefined) return null;
  const stepRows = total(rows, NAMES.stepRows) ?? 0;
  const failed = total(rows, NAMES.failedSteps) ?? 0;
  const steps = total(rows, NAMES.steps);
  const waits = [...waitsFrom(health.engine), ...waiting];
  return (
    <Card title="Step and waits">
      <p class="figure">
        {stepRows > 0 || seconds > 0 ? (
          <>
            {duration(seconds)} <small>{count(stepRows, 'row')}</small>
          </>
        ) : (
          <small>between steps</small>
        )}
      </p>
      <ul class="waits">
        {waits.slice(0, 5).map(({ what, seconds: waited }) => (
          <li class={(waited ?? 0) > 5 ? 'warm' : undefined}>
            <span>{what}</span>
            {waited !== undefined && <span>{duration(waited)}</span>}
          </li>
        ))}
        {waits.length === 0 && <li class="hint">Nothing is waited for.</li>}
      </ul>
      <p class="hint">
        {steps !== undefined && count(steps, 'step')}
        {failed > 0 && <span class="warm">, {whole(failed)} failed</span>}
      </p>
    </Card>
  );
}

function Shares({ samples }: { samples: Sample[] }) {
  const last = samples.at(-1)!;
  const before = samples.at(-31) ?? samples[0];
  // The tiers count different things: choices of rows on a card, experts of a step in RAM.
  const hitsIn = (tier: string) => {
    const of = (sample: Sample) => ({
      ...sample,
      rows: sample.rows.filter(({ labels }) => labels.tier === tier),
    });
    return share(before && of(before), of(last), NAMES.expertHits, (rows) => {
      const hits = total(rows, NAMES.expertHits);
      return hits === undefined ? undefined : hits + (total(rows, NAMES.expertMisses) ?? 0);
    });
  };
  const drafts = share(before, last, NAMES.accepted, (rows) => total(rows, NAMES.drafted));
  const cards: [string, number | undefined, string][] = [
    ['Experts on cards', hitsIn('card'), 'of the experts that tokens chose were in a slot of a card'],
    ['Experts in RAM', hitsIn('ram'), 'of the experts that were wanted from RAM were there'],
    ['Drafts', drafts, 'of drafted tokens were accepted'],
  ];
  return (
    <>
      {cards.map(
        ([title, value, words]) =>
          value !== undefined && (
            <Card title={title}>
              <p class="figure">{percent(value)}</p>
              <div class="gauge" aria-hidden="true">
                <i style={{ width: percent(value).replace(/\s/g, '') }} />
              </div>
              <p class="hint">{words}, last 30 s</p>
            </Card>
          ),
      )}
    </>
  );
}

function Memory({ rows }: { rows: Row[] }) {
  const resident = total(rows, NAMES.resident) ?? 0;
  const anonymous = total(rows, NAMES.anonymous) ?? 0;
  const front = total(rows, NAMES.front) ?? 0;
  const planned = placesFrom(useStore(props).memoryPlan);
  const measured = placeFromProcess(resident, anonymous, front);
  const places = planned.length > 0 ? planned : measured.bytes > 0 ? [measured] : [];
  if (places.length === 0) return null;
  return (
    <Card title={planned.length > 0 ? 'Memory, as planned' : 'Memory'} wide>
      <MemoryPicture places={places} />
      <p class="hint">
        Measured: engine {bytes(resident)}, of that {bytes(anonymous)} its own
        {front > 0 && `; front ${bytes(front)}`}
      </p>
    </Card>
  );
}
