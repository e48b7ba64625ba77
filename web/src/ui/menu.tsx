import { useEffect, useRef, useState } from 'preact/hooks';
import { Icon, type IconName } from './icons';

export interface MenuItem {
  icon: IconName;
  words: string;
  danger?: boolean;
  run: () => void;
}

/** A button that opens a short list of actions. Arrow keys walk, Esc closes. */
export function Menu({ label, items }: { label: string; items: MenuItem[] }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    list.current?.querySelector('button')?.focus();
    const away = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', away);
    return () => document.removeEventListener('pointerdown', away);
  }, [open]);
  const close = () => {
    setOpen(false);
    root.current?.querySelector('button')?.focus();
  };
  const walk = (event: KeyboardEvent) => {
    const buttons = [...list.current!.querySelectorAll('button')];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) buttons.at((at + by) % buttons.length)?.focus();
    else if (event.key === 'Escape') close();
    else if (event.key === 'Tab') return setOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class={open ? 'menu open' : 'menu'} ref={root}>
      <button
        type="button"
        class="quiet small"
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={label}
        onClick={() => setOpen(!open)}
      >
        <Icon name="more" />
      </button>
      {open && (
        <div role="menu" ref={list} onKeyDown={walk}>
          {items.map(({ icon, words, danger, run }) => (
            <button
              type="button"
              role="menuitem"
              class={danger ? 'quiet danger' : 'quiet'}
              onClick={() => {
                close();
                run();
              }}
            >
              <Icon name={icon} size={16} /> {words}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
