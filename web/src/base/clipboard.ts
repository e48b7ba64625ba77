/** Also over plain HTTP from another machine, where browsers have no navigator.clipboard. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    field.className = 'unseen';
    const before = document.activeElement as HTMLElement | null;
    (before?.closest('dialog') ?? document.body).append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    before?.focus();
    return done;
  }
}
