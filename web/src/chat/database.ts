import type { Conversation } from './conversation';

const STORE = 'conversations';

/** The conversations of this browser. Every call fails where it lets nothing be kept. */
export interface Database {
  all(): Promise<unknown[]>;
  put(conversation: Conversation): Promise<void>;
  delete(id: string): Promise<void>;
}

export function openDatabase(): Promise<Database> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open('strata', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { keyPath: 'id' });
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      // Another tab with a newer page may want another form of it.
      database.onversionchange = () => database.close();
      resolve({
        all: () => run(database, 'readonly', (store) => store.getAll()),
        put: (conversation) => run(database, 'readwrite', (store) => store.put(conversation)),
        delete: (id) => run(database, 'readwrite', (store) => store.delete(id)),
      });
    };
  });
}

function run<T>(
  database: IDBDatabase,
  mode: IDBTransactionMode,
  ask: (store: IDBObjectStore) => IDBRequest,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(STORE, mode);
    const asked = ask(transaction.objectStore(STORE));
    transaction.oncomplete = () => resolve(asked.result as T);
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });
}
