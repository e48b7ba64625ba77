import { useEffect, useRef, useState } from 'preact/hooks';
import { apiKey, keyWanted, setKey } from '../base/api';
import { dialog } from '../base/page';
import { props, readProps } from '../base/props';
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
  toolsOf,
  type NumberField,
  type Settings,
} from '../chat/settings';
import { Modal } from './modal';

export function SettingsDialog() {
  const value = useStore(settings);
  const { thinking, effort } = useStore(props);
  useEffect(() => void readProps(), []);
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
        {thinking !== false && (
          <Choice
            label="Thinking"
            words={['on', 'off']}
            value={value.thinking}
            pick={(picked) => set({ thinking: picked })}
          />
        )}
        {effort !== false && (
          <Choice
            label="Effort"
            words={['low', 'medium', 'high']}
            value={value.effort}
            pick={(picked) => set({ effort: picked })}
          />
        )}
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
      <label>
        Tools
        <textarea
          rows={2}
          class="mono"
          spellcheck={false}
          placeholder='[{"type": "function", "function": {"name": …, "parameters": …}}]'
          value={value.tools}
          aria-invalid={toolsOf(value.tools).problem !== ''}
          onInput={(event) => set({ tools: event.currentTarget.value })}
        />
        {toolsOf(value.tools).problem && (
          <span class="wrong">Not used: {toolsOf(value.tools).problem}</span>
        )}
      </label>
      <Below />
    </Modal>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  words: T[];
  value: T | '';
  pick: (word: T | '') => void;
}

function Choice<T extends string>({ label, words, value, pick }: ChoiceProps<T>) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => pick(event.currentTarget.value as T | '')}>
        <option value="">default</option>
        {words.map((word) => (
          <option value={word}>{word}</option>
        ))}
      </select>
    </label>
  );
}

interface NumberProps {
  field: NumberField;
  typed: string;
  type: (typed: string) => void;
}

function NumberInput({ field, typed, type }: NumberProps) {
  const problem = problemOf(field, typed);
  const { [field.name]: own } = useStore(props).defaults;
  return (
    <label>
      {field.label}
      <input
        name={field.name}
        inputMode={field.min < 0 ? 'text' : 'decimal'}
        autocomplete="off"
        placeholder={typeof own === 'number' ? `default: ${+own.toFixed(4)}` : 'default'}
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
