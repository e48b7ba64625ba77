import { keep, recall } from './local';
import { Store } from './store';

export type FailureKind =
  | 'key' // 401: a key is wanted, or this one is wrong
  | 'busy' // 429 or 503: may work after a while
  | 'refused' // another 4xx: the request is at fault
  | 'server' // another 5xx, or an error inside a stream
  | 'cut' // the stream ended before the answer did
  | 'unreachable';

export class Failure extends Error {
  constructor(
    readonly kind: FailureKind,
    message: string,
    readonly details: { status?: number; retryAfter?: number; code?: string; param?: string } = {},
  ) {
    super(message);
  }
}

/** The API key. Without "remember" it ends with the tab. */
export const apiKey = new Store<string>(
  recall('key', () => sessionStorage) ?? recall('key') ?? '',
);

export function setKey(key: string, remember: boolean): void {
  apiKey.set(key);
  keep('key', remember ? null : key || null, () => sessionStorage);
  keep('key', remember && key ? key : null);
}

/** Raised when the server asks for a key; the page then shows the field. */
export const keyWanted = new Store(false);

/**
 * Paths are relative, so the page works below a prefix of a proxy. `asks` false: a missing key is
 * no reason to open the field, as nobody has asked for anything.
 */
export async function request(
  path: string,
  init: RequestInit = {},
  asks = true,
): Promise<Response> {
  const headers = new Headers(init.headers);
  if (apiKey.value) headers.set('Authorization', 'Bearer ' + apiKey.value);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, cache: 'no-store' });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Failure('unreachable', 'The server cannot be reached.');
  }
  if (response.status === 401 && asks) keyWanted.set(true);
  return response;
}

export function kindOf(status: number): FailureKind {
  if (status === 401) return 'key';
  if (status === 429 || status === 503) return 'busy';
  return status < 500 ? 'refused' : 'server';
}

/** Seconds, from a header that holds seconds or a date. */
export function retryAfter(header: string | null, now = Date.now()): number | undefined {
  if (!header) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}

/** What a reply that is not 2xx says. */
export async function failureOf(response: Response): Promise<Failure> {
  const wait = retryAfter(response.headers.get('Retry-After'));
  let message = `The server answered with status ${response.status}.`;
  const details: Failure['details'] = { status: response.status, retryAfter: wait };
  try {
    const { error } = await response.json();
    if (typeof error?.message === 'string') message = error.message;
    if (typeof error?.code === 'string') details.code = error.code;
    if (typeof error?.param === 'string') details.param = error.param;
  } catch {
    // Something between the browser and the server answered.
  }
  return new Failure(kindOf(response.status), message, details);
}
