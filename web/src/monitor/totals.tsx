import { duration, percent, rate, whole } from '../base/words';
import { Card } from './card';
import { total, type Row } from './metrics';
import { NAMES } from './names';

/** Since the server began. */
export function Totals({ rows }: { rows: Row[] }) {
  const entries = tokensOf(rows);
  const answers = byLabel(rows, NAMES.answers, 'reason');
  const http = byLabel(rows, NAMES.http, 'status');
  if (entries.length + answers.length + http.length === 0) return null;
  return (
    <Card title="Since the start" wide>
      <div class="tables">
        <Figures caption="Ended answers" entries={entries} />
        <Figures caption="How answers ended" entries={answers} />
        <Figures caption="HTTP replies by status" entries={http} />
      </div>
    </Card>
  );
}

function tokensOf(rows: Row[]): [string, string][] {
  const of = (name: string) => total(rows, name);
  const [prompt, cached, answer] = [
    of(NAMES.endedPrompt),
    of(NAMES.endedCached),
    of(NAMES.endedAnswer),
  ];
  const [queued, reading, writing] = [
    of(NAMES.queueSeconds),
    of(NAMES.promptSeconds),
    of(NAMES.decodeSeconds),
  ];
  const result: [string, string][] = [];
  if (prompt !== undefined) result.push(['prompt tokens', whole(prompt)]);
  if (prompt && cached !== undefined) result.push(['known already', percent(cached / prompt)]);
  if (answer !== undefined) result.push(['answer tokens', whole(answer)]);
  if (answer && writing) result.push(['on average', `${rate(answer / writing)} tokens/s`]);
  if (queued !== undefined) result.push(['waited for a slot', duration(queued)]);
  if (reading !== undefined) result.push(['read prompts', duration(reading)]);
  if (writing !== undefined) result.push(['wrote answers', duration(writing)]);
  return result;
}

function byLabel(rows: Row[], name: string, label: string): [string, string][] {
  const sums = new Map<string, number>();
  for (const row of rows) {
    if (row.name !== name) continue;
    const key = row.labels[label] ?? '';
    sums.set(key, (sums.get(key) ?? 0) + row.value);
  }
  return [...sums]
    .filter(([, n]) => n > 0)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([key, n]) => [key, whole(n)]);
}

function Figures({ caption, entries }: { caption: string; entries: [string, string][] }) {
  if (entries.length === 0) return null;
  return (
    <table>
      <caption>{caption}</caption>
      <tbody>
        {entries.map(([name, value]) => (
          <tr>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
