import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from './icons';

interface Props {
  title: string;
  class?: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** The browser keeps the focus inside, and closes it with Esc. */
export function Modal({ title, class: name, onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    element.current?.showModal();
    return () => before?.focus();
  }, []);
  return (
    <dialog
      ref={element}
      class={name}
      aria-label={title}
      onClose={onClose}
      onPointerDown={(event) => {
        if (event.target === element.current) element.current?.close();
      }}
    >
      <div class="sheet">
        <header>
          <h2>{title}</h2>
          <button
            type="button"
            class="quiet"
            aria-label="Close"
            onClick={() => element.current?.close()}
          >
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
