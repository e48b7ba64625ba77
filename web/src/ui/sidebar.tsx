import { useEffect, useRef, useState } from 'preact/hooks';
import { dialog, drawer, nextTheme, theme, view } from '../base/page';
import { useStore } from '../base/store';
import { change, deleteConversation, library } from '../chat/library';
import { asJson, asMarkdown, download, fileName } from '../chat/export';
import { runs, stop } from '../chat/runs';
import { changedCount, settings } from '../chat/settings';
import type { Conversation } from '../chat/conversation';
import { Icon, Logo } from './icons';
import { newChat, openConversation } from './keys';
import { Menu } from './menu';

export function Sidebar() {
  const { conversations, shown } = useStore(library);
  const running = useStore(runs);
  const isChat = useStore(view) === 'chat';
  const [sought, setSought] = useState('');
  const found = conversations.filter((each) => matches(each, sought));
  return (
    <nav class="side" aria-label="Conversations">
      <div class="brand">
        <Logo />
        <span>strata</span>
        <button
          type="button"
          class="quiet narrow-only"
          aria-label="Close"
          onClick={() => drawer.set(false)}
        >
          <Icon name="close" />
        </button>
      </div>
      <button type="button" class="new" onClick={newChat}>
        <Icon name="plus" /> New chat
      </button>
      {conversations.length > 6 && (
        <input
          class="search"
          type="search"
          placeholder="Search"
          aria-label="Search in conversations"
          value={sought}
          onInput={(event) => setSought(event.currentTarget.value)}
        />
      )}
      <div class="list">
        {grouped(found, Date.now()).map(([name, group]) => (
          <section key={name}>
            <h2>{name}</h2>
            <ul>
              {group.map((each) => (
                <Entry
                  key={each.id}
                  conversation={each}
                  shown={isChat && each.id === shown}
                  running={running.has(each.id)}
                />
              ))}
            </ul>
          </section>
        ))}
        {conversations.length === 0 && <p class="hint">Conversations stay in this browser.</p>}
        {conversations.length > 0 && found.length === 0 && <p class="hint">Nothing found.</p>}
      </div>
      <Foot />
    </nav>
  );
}

function matches(conversation: Conversation, sought: string): boolean {
  const words = sought.trim().toLowerCase();
  if (!words || conversation.title.toLowerCase().includes(words)) return true;
  return conversation.messages.some(({ content }) => content.toLowerCase().includes(words));
}

/** By the day of the last change. */
export function grouped(list: Conversation[], now: number): [string, Conversation[]][] {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const nameOf = ({ updated }: Conversation) =>
    updated >= midnight
      ? 'Today'
      : updated >= midnight - day
        ? 'Yesterday'
        : updated >= midnight - 6 * day
          ? 'This week'
          : 'Earlier';
  const groups = new Map<string, Conversation[]>();
  for (const each of list) {
    const name = nameOf(each);
    groups.set(name, [...(groups.get(name) ?? []), each]);
  }
  return [...groups];
}

interface EntryProps {
  conversation: Conversation;
  shown: boolean;
  running: boolean;
}

function Entry({ conversation, shown, running }: EntryProps) {
  const [renaming, setRenaming] = useState(false);
  const { id, title } = conversation;
  const rename = (typed: string | null) => {
    setRenaming(false);
    const name = typed?.trim();
    if (name) change(id, (each) => ({ ...each, title: name, named: true }));
  };
  if (renaming) return <Rename title={title} done={rename} />;
  const forget = () => {
    if (!confirm(`Delete "${title}"? It cannot be brought back.`)) return;
    stop(id);
    deleteConversation(id);
  };
  return (
    <li class={shown ? 'entry shown' : 'entry'}>
      <button
        type="button"
        class="quiet title"
        aria-current={shown ? 'page' : undefined}
        title={title}
        onClick={() => openConversation(id)}
      >
        {running && <span class="dot busy" role="img" aria-label="is being answered" />}
        <span>{title}</span>
      </button>
      <Menu
        label={`More about ${title}`}
        items={[
          { icon: 'edit', words: 'Rename', run: () => setRenaming(true) },
          {
            icon: 'save',
            words: 'Export as Markdown',
            run: () => download(fileName(title, 'md'), 'text/markdown', asMarkdown(conversation)),
          },
          {
            icon: 'save',
            words: 'Export as JSON',
            run: () => download(fileName(title, 'json'), 'application/json', asJson([conversation])),
          },
          { icon: 'trash', words: 'Delete', danger: true, run: forget },
        ]}
      />
    </li>
  );
}

function Rename({ title, done }: { title: string; done: (name: string | null) => void }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  return (
    <li class="entry">
      <input
        ref={field}
        aria-label="Name of the conversation"
        maxLength={200}
        defaultValue={title}
        onBlur={(event) => done(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') done(event.currentTarget.value);
          if (event.key === 'Escape') {
            event.stopPropagation();
            done(null);
          }
        }}
      />
    </li>
  );
}

function Foot() {
  const isMonitor = useStore(view) === 'monitor';
  const shade = useStore(theme);
  const n = changedCount(useStore(settings));
  return (
    <div class="foot">
      <button
        type="button"
        class="quiet wide"
        aria-pressed={isMonitor}
        onClick={() => {
          drawer.set(false);
          view.set(isMonitor ? 'chat' : 'monitor');
        }}
      >
        <Icon name={isMonitor ? 'chat' : 'monitor'} /> {isMonitor ? 'Back to the chat' : 'Monitor'}
      </button>
      <button
        type="button"
        class="quiet wide"
        onClick={() => {
          drawer.set(false);
          dialog.set('settings');
        }}
      >
        <Icon name="settings" /> Settings
        {n > 0 && <span class="badge" title={`${n} differ from those of the server`}>{n}</span>}
      </button>
      <div class="row">
        <button
          type="button"
          class="quiet"
          onClick={nextTheme}
          title={`Colours: ${shade}`}
          aria-label={`Colours: ${shade}`}
        >
          <Icon name={shade} />
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() => dialog.set('help')}
          title="Keys (Ctrl + /)"
          aria-label="Help"
        >
          <Icon name="help" />
        </button>
      </div>
    </div>
  );
}
