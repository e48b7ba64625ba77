import { useRef, useState } from 'preact/hooks';
import { apiKey, keyWanted, setKey } from '../base/api';
import { dialog } from '../base/page';
import { useStore } from '../base/store';
import { count } from '../base/words';
import { asJson, download, fromJson } from '../chat/export';
import { importConversations, library } from '../chat/library';
import {
  changedCount,
  MAX_STOPS,
  NO_SETTINGS,
  NUMBER_FIELDS,
  problemOf,
  setSettings,
  settings,
  stopsOf,
  type NumberField,
  type Settings,
} from '../chat/settings';
import { Modal } from './modal';

export function SettingsDialog() {
  const value = useStore(settings);
  const set = (part: Partial<Settings>) => setSettings({ ...settings.value, ...part });
  return (
    <Modal title="Settings" class="settings" onClose={() => dialog.set(null)}>
      <p class="hint">They hold for the next question. What is empty is left to the server.</p>
      <label>
        System prompt
        <textarea
          rows={3}
          value={value.system}
          onInput={(event) => set({ system: event.currentTarget.value })}
        />
      </label>
      <div class="grid">
        <label>
          Thinking
          <select
            value={value.thinking}
            onChange={(event) => set({ thinking: event.currentTarget.value as Settings['thinking'] })}
          >
            <option value="">default</option>
            <option value="on">on</option>
            <option value="off">off</option>
          </select>
        </label>
        <label>
          Effort
          <select
            value={value.effort}
            onChange={(event) => set({ effort: event.currentTarget.value as Settings['effort'] })}
          >
            <option value="">default</option>
            <option value="low">low</option>
            <option value="medium">medium</option>
            <option value="high">high</option>
          </select>
        </label>
        {NUMBER_FIELDS.map((field) => (
          <NumberInput
            key={field.name}
            field={field}
            typed={value.numbers[field.name] ?? ''}
            type={(typed) =>
              set({ numbers: { ...settings.value.numbers, [field.name]: typed } })
            }
          />
        ))}
      </div>
      <label>
        Stop at
        <textarea
          rows={2}
          placeholder="one text a line; \n stands for a line break"
          value={value.stop}
          onInput={(event) => set({ stop: event.currentTarget.value })}
        />
        {stopsOf(value.stop).length > MAX_STOPS && (
          <span class="wrong">Only the first {MAX_STOPS} count.</span>
        )}
      </label>
      <Below />
    </Modal>
  );
}

interface NumberProps {
  field: NumberField;
  typed: string;
  type: (typed: string) => void;
}

function NumberInput({ field, typed, type }: NumberProps) {
  const problem = problemOf(field, typed);
  return (
    <label>
      {field.label}
      <input
        name={field.name}
        inputMode={field.min < 0 ? 'text' : 'decimal'}
        autocomplete="off"
        placeholder="default"
        value={typed}
        aria-invalid={problem !== ''}
        aria-describedby={`about-${field.name}`}
        onInput={(event) => type(event.currentTarget.value)}
      />
      <span id={`about-${field.name}`} class={problem ? 'wrong' : 'hint'}>
        {problem ? `${problem}; not used` : field.hint}
      </span>
    </label>
  );
}

function ImportButton() {
  const [said, setSaid] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const read = async () => {
    const file = field.current?.files?.[0];
    if (!file) return;
    try {
      const conversations = fromJson(await file.text());
      importConversations(conversations);
      setSaid(`${count(conversations.length, 'conversation')} read.`);
    } catch {
      setSaid('That is no export of this page.');
    }
  };
  return (
    <>
      <span class="hint" role="status">
        {said}
      </span>
      <input ref={field} type="file" accept=".json" hidden aria-label="Export to read" onChange={read} />
      <button type="button" onClick={() => field.current?.click()}>
        Import…
      </button>
    </>
  );
}

function Below() {
  const hasKey = useStore(apiKey) !== '';
  const { conversations } = useStore(library);
  const n = changedCount(useStore(settings));
  return (
    <div class="row end">
      <button
        type="button"
        class="first"
        disabled={n === 0}
        onClick={() => setSettings(NO_SETTINGS)}
      >
        All to default
      </button>
      {hasKey ? (
        <button type="button" onClick={() => setKey('', false)}>
          Forget the API key
        </button>
      ) : (
        <button
          type="button"
          onClick={() => {
            dialog.set(null);
            keyWanted.set(true);
          }}
        >
          API key…
        </button>
      )}
      <ImportButton />
      <button
        type="button"
        disabled={conversations.length === 0}
        onClick={() =>
          download('strata-conversations.json', 'application/json', asJson(conversations))
        }
      >
        Export all
      </button>
    </div>
  );
}
