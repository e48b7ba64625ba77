import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { health } from '../base/health';
import { editing } from '../base/page';
import { useStore } from '../base/store';
import { path, versions, type Conversation } from '../chat/conversation';
import { runs, send } from '../chat/runs';
import { Icon, Logo } from './icons';
import { MessageView } from './message';

/** So near to the end the reader is taken to follow it. */
const NEAR_END_PX = 80;

export function Thread({ conversation }: { conversation: Conversation | undefined }) {
  const running = useStore(runs);
  const edited = useStore(editing);
  const scroller = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAway, setAway] = useState(false);
  const toEnd = () => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  const messages = conversation ? path(conversation) : [];
  const run = conversation && running.get(conversation.id);
  useLayoutEffect(() => {
    if (follows.current && !edited) toEnd();
  });
  // One's own question is always shown.
  useEffect(() => {
    if (run) follows.current = true;
    if (run) toEnd();
  }, [run?.message]);
  const onScroll = () => {
    // The event comes a frame later, when another conversation may be shown.
    if (!scroller.current) return;
    const { scrollHeight, scrollTop, clientHeight } = scroller.current;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    setAway(!follows.current);
  };
  return (
    <div class="thread-frame">
      <div class="thread" ref={scroller} onScroll={onScroll}>
        {messages.length === 0 && <Welcome conversation={conversation} />}
        <ol class="messages" aria-label="Messages">
          {messages.map((message) => (
            <MessageView
              key={message.id}
              conversation={conversation!.id}
              message={message}
              versions={versions(conversation!, message)}
              run={run?.message === message.id ? run : undefined}
              locked={Boolean(run)}
              editing={edited === message.id}
            />
          ))}
        </ol>
      </div>
      {isAway && (
        <button
          type="button"
          class="to-end"
          aria-label="To the end"
          onClick={() => {
            follows.current = true;
            toEnd();
          }}
        >
          <Icon name="down" />
        </button>
      )}
    </div>
  );
}

const EXAMPLES = ['What is a piano?', 'Count from 3 to 9.', 'What is 27 + 45?', 'Who are you?'];

function Welcome({ conversation }: { conversation: Conversation | undefined }) {
  const { model } = useStore(health);
  return (
    <div class="welcome">
      <Logo />
      <h2>{model ? `Ask ${model}` : 'Ask something'}</h2>
      <p>What you write goes to the machine that runs this server, and nowhere else.</p>
      <div class="examples">
        {EXAMPLES.map((words) => (
          <button type="button" onClick={() => send(conversation?.id ?? null, words)}>
            {words}
          </button>
        ))}
      </div>
    </div>
  );
}
