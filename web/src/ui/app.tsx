import { useEffect } from 'preact/hooks';
import { followHealth, health, trouble } from '../base/health';
import { dialog, drawer, view } from '../base/page';
import { useStore } from '../base/store';
import { library } from '../chat/library';
import { runs, spoken } from '../chat/runs';
import { Monitor } from '../monitor/monitor';
import { Composer } from './composer';
import { HelpDialog } from './help';
import { KeyDialog } from './key_dialog';
import { SettingsDialog } from './settings_dialog';
import { Sidebar } from './sidebar';
import { Thread } from './thread';
import { TopBar } from './top_bar';

export function App() {
  const shownView = useStore(view);
  const isOpen = useStore(drawer);
  const open = useStore(dialog);
  const { loaded, shown, conversations } = useStore(library);
  const conversation = conversations.find((each) => each.id === shown);
  useTitle(conversation?.title);
  return (
    <div class={isOpen ? 'page drawer-open' : 'page'}>
      <Sidebar />
      <div class="shade" onClick={() => drawer.set(false)} />
      <main>
        <TopBar conversation={conversation} />
        <Trouble />
        {shownView === 'monitor' ? (
          <Monitor />
        ) : (
          loaded && (
            <>
              <Thread key={shown ?? ''} conversation={conversation} />
              <Composer key={'to ' + (shown ?? '')} conversation={conversation} />
            </>
          )
        )}
      </main>
      {open === 'settings' && <SettingsDialog />}
      {open === 'help' && <HelpDialog />}
      <KeyDialog />
      <Spoken />
    </div>
  );
}

function useTitle(title: string | undefined): void {
  const { model } = useStore(health);
  useEffect(() => {
    document.title = [title, model, 'strata'].filter(Boolean).join(' · ');
  }, [title, model]);
}

/** One line below the bar while the server is not as it should be. */
function Trouble() {
  const now = useStore(health);
  const running = useStore(runs);
  const { problem } = useStore(library);
  // An answer that failed may be the first sign that the server is gone.
  useEffect(() => void followHealth(), [running.size]);
  const words = trouble(now);
  return (
    <div role="status">
      {words && (
        <p class={`banner ${now.state}`}>
          <span class={`dot ${now.state}`} />
          {words}
        </p>
      )}
      {problem && <p class="banner degraded">{problem}</p>}
    </div>
  );
}

/** For screen readers: an answer read out token by token would be noise. */
function Spoken() {
  return (
    <div class="unseen" aria-live="polite">
      {useStore(spoken)}
    </div>
  );
}
