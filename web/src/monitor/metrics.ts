/** One row of the text format of Prometheus. */
export interface Row {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/;
const LABEL = /([a-zA-Z_]\w*)="((?:\\.|[^"\\])*)"/g;
const ESCAPED: Record<string, string> = { n: '\n' };

function numberOf(text: string): number {
  if (/^[+-]?Inf$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return Number(text);
}

/** Lines that are no rows are passed over. */
export function parseMetrics(text: string): Row[] {
  const rows: Row[] = [];
  for (const line of text.split('\n')) {
    const match = LINE.exec(line.trim());
    if (!match) continue;
    const labels: Row['labels'] = {};
    for (const [, name, value] of (match[2] ?? '').matchAll(LABEL))
      labels[name!] = value!.replace(/\\(.)/g, (_, c: string) => ESCAPED[c] ?? c);
    const value = numberOf(match[3]!);
    if (!Number.isNaN(value)) rows.push({ name: match[1]!, labels, value });
  }
  return rows;
}

/** The sum of a row over its labels; undefined: not reported. */
export function total(rows: Row[], name: string): number | undefined {
  let sum: number | undefined;
  for (const row of rows) if (row.name === name) sum = (sum ?? 0) + row.value;
  return sum;
}

export interface Sample {
  /** Milliseconds of a clock that does not jump. */
  at: number;
  rows: Row[];
}

/** How fast a counter grew between two samples, a second; one that began anew counts from zero. */
export function growth(before: Sample | undefined, after: Sample, name: string): number | undefined {
  const last = total(after.rows, name);
  const first = before && total(before.rows, name);
  if (last === undefined || first === undefined) return undefined;
  const seconds = (after.at - before!.at) / 1000;
  return seconds > 0 ? (last >= first ? last - first : last) / seconds : undefined;
}

/** The share that `part` had of the growth of both; over all of it where nothing grew. */
export function share(
  before: Sample | undefined,
  after: Sample,
  part: string,
  whole: (rows: Row[]) => number | undefined,
): number | undefined {
  const parts = total(after.rows, part);
  const all = whole(after.rows);
  if (parts === undefined || !all) return undefined;
  const partsBefore = before ? (total(before.rows, part) ?? 0) : 0;
  const allBefore = before ? (whole(before.rows) ?? 0) : 0;
  const grown = all - allBefore;
  return grown > 0 && parts >= partsBefore ? (parts - partsBefore) / grown : parts / all;
}
