import { useEffect, useState } from 'preact/hooks';
import { sentence } from '../base/words';
import type { Message } from '../chat/conversation';
import type { Run } from '../chat/runs';
import { Markdown } from '../markdown/markdown';
import { Actions } from './actions';
import { Calls } from './calls';
import { Editor } from './editor';
import { memo } from './memo';
import { Reasoning } from './reasoning';

export interface MessageProps {
  conversation: string;
  message: Message;
  versions: Message[];
  run: Run | undefined;
  /** An answer is being written somewhere in this conversation. */
  locked: boolean;
  editing: boolean;
}

export const MessageView = memo(
  (props: MessageProps) => {
    const { message, run } = props;
    const isUser = message.role === 'user';
    return (
      <li class={`message ${message.role}`} aria-busy={run !== undefined}>
        <h3 class="unseen">{isUser ? 'You' : message.model || 'Answer'}</h3>
        {props.editing ? (
          <Editor conversation={props.conversation} message={message} />
        ) : isUser ? (
          <div class="said">{message.content}</div>
        ) : (
          <AnswerBody {...props} />
        )}
        {!props.editing && !run && <Actions {...props} />}
      </li>
    );
  },
  // `versions` is a new list each time.
  (a, b) =>
    a.message === b.message &&
    a.run === b.run &&
    a.locked === b.locked &&
    a.editing === b.editing &&
    a.versions.length === b.versions.length,
);

function AnswerBody({ conversation, message, run, locked }: MessageProps) {
  const isThinking = run !== undefined && message.content === '' && !message.calls;
  return (
    <>
      {message.reasoning.trim() && (
        <Reasoning
          text={message.reasoning}
          seconds={message.reasoningSeconds}
          active={isThinking}
        />
      )}
      {message.content && <Markdown text={message.content} />}
      {message.calls && (
        <Calls conversation={conversation} message={message} writing={run !== undefined} locked={locked} />
      )}
      {run && (
        <Waiting run={run} quiet={Boolean(message.content || message.reasoning || message.calls)} />
      )}
      {!run && message.state === 'failed' && (
        <p class="problem" role="alert">
          {sentence(message.problem || 'The answer failed')}
        </p>
      )}
      {!run && message.state === 'done' && !message.content && !message.calls && (
        <p class="aside">The answer is empty.</p>
      )}
      {!run && message.state === 'length' && (
        <p class="aside">Cut: the most tokens allowed, or the end of the context, was reached.</p>
      )}
      {!run && message.state === 'stopped' && <p class="aside">Stopped.</p>}
    </>
  );
}

function Waiting({ run, quiet }: { run: Run; quiet: boolean }) {
  const now = useSeconds(run.phase === 'again' && run.until !== undefined);
  if (run.phase !== 'again') {
    return quiet ? null : (
      <p class="waiting" aria-label="Waiting for the first token">
        <i /> <i /> <i />
      </p>
    );
  }
  const left = run.until === undefined ? null : Math.max(0, Math.ceil((run.until - now) / 1000));
  return (
    <p class="problem mild">
      {sentence(run.why ?? '')} {left !== null && `Asked again in ${left} s.`}
    </p>
  );
}

function useSeconds(active: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!active) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}
