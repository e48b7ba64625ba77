import { editing } from '../base/page';
import { count, duration, rate } from '../base/words';
import type { Measured, Message } from '../chat/conversation';
import { retry, showVersion } from '../chat/runs';
import { CopyButton } from './copy_button';
import { Icon } from './icons';
import type { MessageProps } from './message';

export function Actions({ conversation, message, versions, locked }: MessageProps) {
  const isUser = message.role === 'user';
  const failed = message.state === 'failed';
  return (
    <div class={failed ? 'actions always' : 'actions'}>
      <Versions conversation={conversation} message={message} versions={versions} locked={locked} />
      {message.content && <CopyButton text={message.content} label="Copy" />}
      {!locked && (isUser || message.content) && (
        <button
          type="button"
          class="quiet small"
          aria-label="Edit"
          title="Edit"
          onClick={() => editing.set(message.id)}
        >
          <Icon name="edit" size={15} />
        </button>
      )}
      {!locked && !isUser && (
        <button
          type="button"
          class={failed ? 'small' : 'quiet small'}
          aria-label="Try again"
          title="Another answer"
          onClick={() => retry(conversation, message.id)}
        >
          <Icon name="again" size={15} />
          {failed && ' Try again'}
        </button>
      )}
      {!isUser && <Figures message={message} />}
    </div>
  );
}

type VersionsProps = Pick<MessageProps, 'conversation' | 'message' | 'versions' | 'locked'>;

function Versions({ conversation, message, versions, locked }: VersionsProps) {
  if (versions.length < 2) return null;
  const at = versions.findIndex((each) => each.id === message.id);
  const go = (by: number) => showVersion(conversation, versions[at + by]!.id);
  return (
    <span class="versions">
      <button
        type="button"
        class="quiet small"
        aria-label="Version before"
        disabled={locked || at <= 0}
        onClick={() => go(-1)}
      >
        <Icon name="left" size={15} />
      </button>
      {at + 1} / {versions.length}
      <button
        type="button"
        class="quiet small"
        aria-label="Version after"
        disabled={locked || at + 1 >= versions.length}
        onClick={() => go(1)}
      >
        <Icon name="right" size={15} />
      </button>
    </span>
  );
}

/** What was measured of an answer, or counted of it so far. */
export function figuresOf({ tokens, rate: speed, firstSeconds, counted }: Measured): string {
  const words = [
    (counted ? 'about ' : '') + count(tokens, 'token'),
    speed && `${rate(speed)} tokens/s`,
    firstSeconds && `first after ${duration(firstSeconds)}`,
  ];
  return words.filter(Boolean).join(' · ');
}

function Figures({ message: { measured } }: { message: Message }) {
  if (!measured) return null;
  const { promptTokens, cachedTokens, drafted, accepted } = measured;
  const more = [
    promptTokens !== undefined &&
      `Prompt: ${count(promptTokens, 'token')}` +
        (cachedTokens ? `, ${cachedTokens} of them known already` : ''),
    drafted && `Drafts: ${accepted ?? 0} of ${count(drafted, 'token')} accepted`,
  ];
  return (
    <span class="figures" title={more.filter(Boolean).join('\n') || undefined}>
      {figuresOf(measured)}
    </span>
  );
}
