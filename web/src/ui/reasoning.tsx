import { useState } from 'preact/hooks';
import { duration } from '../base/words';
import { Icon } from './icons';

interface Props {
  text: string;
  seconds: number | undefined;
  /** It is being thought. */
  active: boolean;
}

/** Folded; while it is being thought its last line can be seen. */
export function Reasoning({ text, seconds, active }: Props) {
  const [open, setOpen] = useState(false);
  const took = seconds !== undefined && seconds >= 0.1 ? ` for ${duration(seconds)}` : '';
  const lastLine = text.trimEnd().split('\n').at(-1)!;
  return (
    <section class={open ? 'reasoning open' : 'reasoning'}>
      <button type="button" class="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="right" size={15} />
        <span class={active ? 'thinking' : undefined}>{active ? 'Thinking…' : 'Thought' + took}</span>
        {active && !open && <span class="last-line">{lastLine.slice(-160)}</span>}
      </button>
      {open && <div class="thoughts">{text.trim()}</div>}
    </section>
  );
}
