import { useLayoutEffect, useState } from 'preact/hooks';

/** A value that components follow. Values are replaced, never changed in place. */
export class Store<T> {
  private readonly listeners = new Set<() => void>();
  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }
  set(value: T): void {
    if (value === this.current) return;
    this.current = value;
    for (const listener of [...this.listeners]) listener();
  }
  update(change: (value: T) => T): void {
    this.set(change(this.current));
  }
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [, render] = useState({});
  const drawn = store.value;
  useLayoutEffect(() => {
    const draw = () => render({});
    // It may have changed between drawing and here.
    if (store.value !== drawn) draw();
    return store.subscribe(draw);
  }, [store]);
  return drawn;
}
