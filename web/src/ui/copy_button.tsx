import { useEffect, useState } from 'preact/hooks';
import { copyText } from '../base/clipboard';
import { Icon } from './icons';

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState('');
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(''), 1600);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <button
      type="button"
      class="quiet small"
      aria-label={said || label}
      title={said || label}
      onClick={async () => setSaid((await copyText(text)) ? 'Copied' : 'Not allowed to copy')}
    >
      <Icon name={said === 'Copied' ? 'done' : 'copy'} size={15} />
    </button>
  );
}
