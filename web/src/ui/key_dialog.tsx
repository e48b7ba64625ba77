import { useState } from 'preact/hooks';
import { apiKey, keyWanted, setKey } from '../base/api';
import { useStore } from '../base/store';
import { Modal } from './modal';

/** Opens when the server asks for a key. */
export function KeyDialog() {
  const [typed, setTyped] = useState('');
  const [remember, setRemember] = useState(false);
  if (!useStore(keyWanted)) return null;
  const wasRefused = apiKey.value !== '';
  return (
    <Modal title="API key" class="small-dialog" onClose={() => keyWanted.set(false)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!typed.trim()) return;
          setKey(typed.trim(), remember);
          setTyped('');
          keyWanted.set(false);
        }}
      >
        <p>
          {wasRefused
            ? 'The server does not know this key. Its start line names the right one (--api-key).'
            : 'This server answers only with one of its keys (--api-key).'}
        </p>
        <label>
          Key
          <input
            type="password"
            autocomplete="off"
            required
            autofocus
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={remember}
            onChange={(event) => setRemember(event.currentTarget.checked)}
          />
          Remember it in this browser
        </label>
        <div class="row end">
          <button type="submit" class="primary">
            Use it
          </button>
        </div>
      </form>
    </Modal>
  );
}
