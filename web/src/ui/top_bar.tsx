import { health, stateWord } from '../base/health';
import { drawer, view } from '../base/page';
import { useStore } from '../base/store';
import type { Conversation } from '../chat/conversation';
import { Icon } from './icons';
import { newChat } from './keys';

export function TopBar({ conversation }: { conversation: Conversation | undefined }) {
  const { state, model } = useStore(health);
  const isMonitor = useStore(view) === 'monitor';
  const title = isMonitor ? 'Monitor' : (conversation?.title ?? 'New chat');
  return (
    <header class="bar">
      <button
        type="button"
        class="quiet narrow-only"
        aria-label="Conversations"
        onClick={() => drawer.set(true)}
      >
        <Icon name="menu" />
      </button>
      <h1 title={title}>{title}</h1>
      <button
        type="button"
        class="quiet server"
        onClick={() => view.set(isMonitor ? 'chat' : 'monitor')}
        title={isMonitor ? 'Back to the chat' : 'How the server is doing'}
      >
        <span class={`dot ${state}`} />
        <span class="model">{model || 'strata'}</span>
        <span class="state">{stateWord(state)}</span>
      </button>
      <button type="button" class="quiet narrow-only" aria-label="New chat" onClick={newChat}>
        <Icon name="plus" />
      </button>
    </header>
  );
}
