import { bytes as words } from '../base/words';

/** The plan of memory, in the form of `strata plan --json`, as blocks of a picture. */
export type Group = 'experts' | 'weights' | 'cache' | 'work' | 'reserve' | 'free';

export interface Block {
  group: Group;
  bytes: number;
  /** The largest lines, for the reader who wants to know. */
  lines: { name: string; bytes: number }[];
}

export interface Place {
  name: string;
  /** Blocks fill this; 0 where no end is known (storage). */
  bytes: number;
  /** In words, below the picture. */
  note: string;
  blocks: Block[];
}

export const GROUP_WORDS: Record<Group, string> = {
  experts: 'experts',
  weights: 'other weights',
  cache: 'context and state',
  work: 'work space',
  reserve: 'reserve',
  free: 'free',
};
const ORDER: Group[] = ['experts', 'weights', 'cache', 'work', 'reserve', 'free'];

interface Line {
  owner: string;
  name: string;
  bytes: number;
}

const OWNERS: Record<string, Group> = {
  weights: 'weights',
  tables: 'weights',
  state: 'cache',
  sessions: 'cache',
  checkpoints: 'cache',
  cache: 'cache',
};

/** Of experts: the rest of their lines is what moves and computes them. */
const EXPERTS = ['slots', 'in RAM'];

/** By the owner of a line; the planner has no groups. What is there only while loading is work. */
export function groupOf({ owner, name }: Pick<Line, 'owner' | 'name'>): Group {
  if (owner === 'experts') return EXPERTS.includes(name) ? 'experts' : 'work';
  if (name === 'prompt cache') return 'cache';
  return name === 'staging' ? 'work' : (OWNERS[owner] ?? 'work');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function amount(value: unknown): number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0;
}

function placeFrom(value: unknown, fallback: string): Place | null {
  if (!isRecord(value)) return null;
  const given = Array.isArray(value.lines) ? value.lines.filter(isRecord) : [];
  // What is used in the file belongs to the system, which may drop it: no part of the peak.
  const mapped = given.filter((line) => line.mapped === true);
  const lines = given.filter((line) => line.mapped !== true).map(
    (line): Line => ({
      owner: String(line.owner ?? ''),
      name: String(line.name ?? ''),
      bytes: amount(line.bytes),
    }),
  );
  const budget = amount(value.budget_bytes);
  const peak = amount(value.peak_bytes) || lines.reduce((sum, line) => sum + line.bytes, 0);
  const reserve = amount(value.reserve_bytes);
  if (peak === 0 && budget === 0) return null;
  const blocks = blocksOf(lines, peak);
  if (reserve > 0) blocks.push({ group: 'reserve', bytes: reserve, lines: [] });
  // What the budget holds beyond the peak. It has no part of the reserve.
  if (budget > peak) blocks.push({ group: 'free', bytes: budget - peak, lines: [] });
  const slots = amount(value.expert_slots);
  const inFile = mapped.reduce((sum, line) => sum + amount(line.bytes), 0);
  const used = amount(value.used_bytes);
  const notes = [used && `${words(used)} taken so far`, slots && `${slots} expert slots`, inFile && `${words(inFile)} used in the file`];
  return {
    name: typeof value.name === 'string' && value.name ? value.name : fallback,
    bytes: Math.max(budget, peak) + reserve,
    note: notes.filter(Boolean).join(', '),
    blocks,
  };
}

/** Lines that do not live at the same time share room, so together they fill no more than the peak. */
function blocksOf(lines: Line[], peak: number): Block[] {
  const groups = new Map<Group, Line[]>();
  for (const line of lines) {
    const group = groupOf(line);
    groups.set(group, [...(groups.get(group) ?? []), line]);
  }
  const sum = (some: Line[]) => some.reduce((all, line) => all + line.bytes, 0);
  const over = sum(lines) - peak;
  return ORDER.filter((group) => groups.has(group)).flatMap((group) => {
    const own = groups.get(group)!.sort((a, b) => b.bytes - a.bytes);
    const bytes = group === 'work' ? Math.max(0, sum(own) - Math.max(0, over)) : sum(own);
    const top = own.slice(0, 6).map(({ name, owner, bytes }) => ({
      name: [owner, name].filter(Boolean).join(': '),
      bytes,
    }));
    return bytes > 0 ? [{ group, bytes, lines: top }] : [];
  });
}

export function placesFrom(plan: unknown): Place[] {
  if (!isRecord(plan)) return [];
  const cards = Array.isArray(plan.cards) ? plan.cards : [];
  const places = cards.map((card, i) => placeFrom(card, `card ${i}`));
  places.push(placeFrom(plan.ram, 'RAM'));
  if (isRecord(plan.storage) && amount(plan.storage.bytes) > 0) {
    const bytes = amount(plan.storage.bytes);
    const n = amount(plan.storage.experts);
    places.push({
      name: 'Storage',
      bytes,
      note: n ? `${n} experts are read when they are needed` : '',
      blocks: [{ group: 'experts', bytes, lines: [] }],
    });
  }
  return places.filter((place): place is Place => place !== null);
}

/** Without a plan: what the processes hold. */
export function placeFromProcess(resident: number, anonymous: number, front: number): Place {
  const mapped = Math.max(0, resident - anonymous);
  const blocks: Block[] = [
    { group: 'weights', bytes: mapped, lines: [{ name: 'mapped files', bytes: mapped }] },
    { group: 'work', bytes: anonymous, lines: [{ name: 'memory of its own', bytes: anonymous }] },
  ];
  return {
    name: 'Engine process',
    bytes: mapped + anonymous,
    note: front > 0 ? 'as the system counts it' : '',
    blocks: blocks.filter((block) => block.bytes > 0),
  };
}
