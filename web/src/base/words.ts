/** Numbers and messages as people read them. */

/** What a program says, as a sentence: "no such model" becomes "No such model." */
export function sentence(text: string): string {
  const words = text.trim();
  if (!words) return '';
  return words[0]!.toUpperCase() + words.slice(1) + (/[.!?…]$/.test(words) ? '' : '.');
}

export function count(n: number, one: string, many = one + 's'): string {
  return `${whole(n)} ${n === 1 ? one : many}`;
}

export function whole(n: number): string {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

export function rate(n: number): string {
  if (n >= 100) return whole(n);
  return n.toFixed(1);
}

export function bytes(n: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = n;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function duration(seconds: number): string {
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function percent(share: number): string {
  const value = share * 100;
  return `${value >= 99.95 || value === 0 ? Math.round(value) : value.toFixed(1)} %`;
}
