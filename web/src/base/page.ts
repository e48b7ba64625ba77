import { keep, recall } from './local';
import { Store } from './store';

/** What the page shows besides conversations. */
export type View = 'chat' | 'monitor';
export type Dialog = 'settings' | 'help' | null;
export type Theme = 'system' | 'light' | 'dark';

export const view = new Store<View>('chat');
export const dialog = new Store<Dialog>(null);
/** On narrow screens the list lies above the rest. */
export const drawer = new Store(false);
/** The message that is being edited. */
export const editing = new Store<string | null>(null);

const THEMES: Theme[] = ['system', 'light', 'dark'];
export const theme = new Store<Theme>(
  THEMES.find((each) => each === recall('theme')) ?? 'system',
);

export function applyTheme(value = theme.value): void {
  document.documentElement.dataset.theme = value;
}

export function nextTheme(): void {
  theme.update((value) => THEMES[(THEMES.indexOf(value) + 1) % THEMES.length]!);
  keep('theme', theme.value);
  applyTheme();
}

export function focusComposer(): void {
  // After the page has been drawn.
  setTimeout(() => document.getElementById('message')?.focus());
}
