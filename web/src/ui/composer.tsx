import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { editing } from '../base/page';
import { props } from '../base/props';
import { useStore } from '../base/store';
import { find, path, type Conversation } from '../chat/conversation';
import { runs, send, stop } from '../chat/runs';
import { setSettings, settings } from '../chat/settings';
import { figuresOf } from './actions';
import { Icon } from './icons';

/** What was typed and not sent, by conversation; kept while one looks elsewhere. */
const drafts = new Map<string, string>();

export function Composer({ conversation }: { conversation: Conversation | undefined }) {
  const id = conversation?.id ?? null;
  const run = useStore(runs).get(id ?? '');
  const { thinking, ...rest } = useStore(settings);
  const [text, setText] = useState(drafts.get(id ?? '') ?? '');
  const canThink = useStore(props).thinking !== false;
  const field = useRef<HTMLTextAreaElement>(null);
  useGrowing(field, text);
  useEffect(() => {
    // On a phone the keyboard would cover half of what was opened.
    if (matchMedia('(pointer: fine)').matches) field.current?.focus();
  }, []);
  const type = (typed: string) => {
    setText(typed);
    drafts.set(id ?? '', typed);
  };
  const submit = () => {
    if (!text.trim() || run) return;
    type('');
    send(id, text.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      submit();
    } else if (event.key === 'ArrowUp' && !event.altKey && text === '' && conversation && !run) {
      const last = path(conversation).findLast((message) => message.role === 'user');
      if (!last) return;
      event.preventDefault();
      editing.set(last.id);
    }
  };
  const measured = run && find(conversation!, run.message)?.measured;
  const sofar = measured && figuresOf(measured);
  const next = { '': 'on', on: 'off', off: '' } as const;
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <div class="box">
        <textarea
          id="message"
          ref={field}
          rows={1}
          placeholder="Message"
          aria-label="Message"
          value={text}
          onInput={(event) => type(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <div class="row">
          <button
            type="button"
            hidden={!canThink}
            class={`chip ${thinking}`}
            onClick={() => setSettings({ ...rest, thinking: next[thinking] })}
            title="Whether the model thinks before it answers: as the server has it, always, never"
          >
            Thinking: {thinking || 'default'}
          </button>
          <span class="keys">
            {run
              ? [sofar, 'Esc stops'].filter(Boolean).join(' · ')
              : 'Enter sends, Shift + Enter for a new line'}
          </span>
          {run ? (
            <button type="button" class="send" aria-label="Stop" onClick={() => stop(id!)}>
              <Icon name="stop" />
            </button>
          ) : (
            <button type="submit" class="send" aria-label="Send" disabled={!text.trim()}>
              <Icon name="send" />
            </button>
          )}
        </div>
      </div>
    </form>
  );
}

/** As high as its text, up to what the style sheet allows. */
export function useGrowing(field: { current: HTMLTextAreaElement | null }, text: string): void {
  useLayoutEffect(() => {
    const element = field.current;
    if (!element) return;
    element.style.height = 'auto';
    element.style.height = element.scrollHeight + 'px';
  }, [text]);
}
