import { count, duration } from '../base/words';
import { Card } from './card';
import type { Feed } from './feed';
import { total, type Row } from './metrics';
import { NAMES } from './names';
import { slotsFromCounts, type Slot } from './slots';

export function Requests({ state, rows }: { state: Feed; rows: Row[] }) {
  const running = total(rows, NAMES.running);
  const waiting = total(rows, NAMES.waiting);
  const n = total(rows, NAMES.slots) ?? 0;
  if (running === undefined && !state.slots) return null;
  const slots = state.slots ?? slotsFromCounts(n, running ?? 0);
  const inWork = total(rows, NAMES.inWork);
  return (
    <Card title="Requests">
      <p class="figure">
        {running ?? slots.filter((slot) => slot.busy).length} <small>of {slots.length} slots</small>
        {waiting !== undefined && (
          <span class={waiting > 0 ? 'beside warm' : 'beside'}>
            {waiting} <small>waiting</small>
          </span>
        )}
      </p>
      <ul class="slots" aria-label="Slots">
        {slots.map((slot) => (
          <li class={slot.busy ? 'busy' : ''} title={slotWords(slot)} aria-label={slotWords(slot)}>
            <i style={{ width: filled(slot) }} />
          </li>
        ))}
      </ul>
      <p class="hint">
        {inWork !== undefined && `${count(inWork, 'request')} accepted and not ended`}
      </p>
    </Card>
  );
}

function slotWords(slot: Slot): string {
  const { promptTokens, answerTokens, readTokens, seconds } = slot;
  const parts = [
    `Slot ${slot.id}: ${slot.busy ? 'busy' : 'free'}`,
    promptTokens !== undefined && `prompt ${count(promptTokens, 'token')}`,
    readTokens !== undefined && `${readTokens} of them read`,
    answerTokens !== undefined && `answer ${count(answerTokens, 'token')}`,
    seconds !== undefined && `for ${duration(seconds)}`,
  ];
  return parts.filter(Boolean).join(', ');
}

/** How much of the prompt is read, or of the context used; all of it where that is not known. */
function filled({ busy, contextTokens, promptTokens, answerTokens, readTokens }: Slot): string {
  if (!busy) return '0';
  if (readTokens !== undefined && promptTokens) return `${(readTokens / promptTokens) * 100}%`;
  const used = (promptTokens ?? 0) + (answerTokens ?? 0);
  return contextTokens && used ? `${Math.min(100, Math.max(8, (used / contextTokens) * 100))}%` : '100%';
}
