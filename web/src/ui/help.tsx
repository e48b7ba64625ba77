import { dialog } from '../base/page';
import { KEYS } from './keys';
import { Modal } from './modal';

export function HelpDialog() {
  return (
    <Modal title="Keys" onClose={() => dialog.set(null)}>
      <dl class="keys-list">
        {KEYS.map(({ keys, does }) => (
          <>
            <dt>
              {keys.map((key, i) => (
                <>
                  {i > 0 && ' + '}
                  <kbd>{key}</kbd>
                </>
              ))}
            </dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
      <p class="hint">
        Conversations and settings stay in this browser. Questions go to this server alone; the
        page loads nothing from anywhere else.
      </p>
    </Modal>
  );
}
