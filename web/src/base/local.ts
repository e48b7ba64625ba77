/** Small things that stay in this browser. Where it lets nothing be kept, they last as long as the page. */
const PREFIX = 'strata.';

export function recall(name: string, area: () => Storage = () => localStorage): string | null {
  try {
    return area().getItem(PREFIX + name);
  } catch {
    return null;
  }
}

export function keep(
  name: string,
  value: string | null,
  area: () => Storage = () => localStorage,
): void {
  try {
    if (value === null) area().removeItem(PREFIX + name);
    else area().setItem(PREFIX + name, value);
  } catch {
    // Full, or forbidden: the value of this page still holds.
  }
}
