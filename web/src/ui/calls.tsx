import { useState } from 'preact/hooks';
import type { Call, Message } from '../chat/conversation';
import { giveResult } from '../chat/runs';
import { Icon } from './icons';

interface Props {
  conversation: string;
  message: Message;
  writing: boolean;
  locked: boolean;
}

/** What an answer calls: name and arguments, folded, and what the tools gave. */
export function Calls({ conversation, message, writing, locked }: Props) {
  const give = locked || message.state === 'length' ? undefined : giveResult;
  return (
    <>
      {message.calls!.map((call, i) => (
        <CallView
          call={call}
          writing={writing}
          give={give && ((result) => give(conversation, message.id, i, result))}
        />
      ))}
    </>
  );
}

interface CallProps {
  call: Call;
  writing: boolean;
  give?: (result: string) => void;
}

function CallView({ call, writing, give }: CallProps) {
  const [open, setOpen] = useState(false);
  const isDone = call.result !== undefined;
  return (
    <section class={open ? 'reasoning call open' : 'reasoning call'}>
      <button type="button" class="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="right" size={15} />
        <span class={writing ? 'thinking' : undefined}>
          {isDone ? 'Called' : 'Calls'} <code>{call.name}</code>
        </span>
        {!open && <span class="last-line">{call.arguments}</span>}
      </button>
      {open && <div class="thoughts mono">{pretty(call.arguments)}</div>}
      {open && isDone && <div class="thoughts">{call.result}</div>}
      {!isDone && give && <Result name={call.name} give={give} />}
    </section>
  );
}

function Result({ name, give }: { name: string; give: (result: string) => void }) {
  const [text, setText] = useState('');
  return (
    <form
      class="row result"
      onSubmit={(event) => {
        event.preventDefault();
        give(text);
      }}
    >
      <input
        aria-label={`Result of ${name}`}
        placeholder="What it gives"
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit">Give</button>
    </form>
  );
}

/** As it was written where it is no JSON, or not yet. */
function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
