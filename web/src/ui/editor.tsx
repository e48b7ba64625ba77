import { useEffect, useRef, useState } from 'preact/hooks';
import { editing, focusComposer } from '../base/page';
import type { Message } from '../chat/conversation';
import { edit } from '../chat/runs';
import { useGrowing } from './composer';

export function Editor({ conversation, message }: { conversation: string; message: Message }) {
  const [text, setText] = useState(message.content);
  const field = useRef<HTMLTextAreaElement>(null);
  useGrowing(field, text);
  useEffect(() => {
    const element = field.current!;
    element.focus();
    element.setSelectionRange(text.length, text.length);
    element.scrollIntoView({ block: 'nearest' });
  }, []);
  const isUser = message.role === 'user';
  const leave = () => {
    editing.set(null);
    focusComposer();
  };
  const done = () => {
    if (!text.trim()) return;
    leave();
    edit(conversation, message.id, text.trim());
  };
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        done();
      }}
    >
      <textarea
        ref={field}
        aria-label="Edit the message"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          // In an answer Enter is a part of the text.
          const sends = event.key === 'Enter' && (isUser ? !event.shiftKey : event.ctrlKey);
          if (!sends || event.isComposing) return;
          event.preventDefault();
          done();
        }}
      />
      <div class="row">
        <span class="hint">The version before is kept.</span>
        <button type="button" onClick={leave}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={!text.trim()}>
          {isUser ? 'Send' : 'Keep'}
        </button>
      </div>
    </form>
  );
}
