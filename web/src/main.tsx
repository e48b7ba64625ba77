import { render } from 'preact';
import { followHealth } from './base/health';
import { applyTheme } from './base/page';
import { loadLibrary } from './chat/library';
import { App } from './ui/app';
import { onKey } from './ui/keys';
import './style/base.css';
import './style/layout.css';
import './style/message.css';
import './style/prose.css';
import './style/dialogs.css';
import './style/monitor.css';

applyTheme();
render(<App />, document.getElementById('app')!);
document.addEventListener('keydown', onKey);
addEventListener('online', () => void followHealth());
void loadLibrary();
void followHealth();
