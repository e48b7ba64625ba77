const PATHS = {
  plus: 'M12 5v14M5 12h14',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6 6 18',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  copy: 'M9 9h10v10H9zM5 15V5h10',
  done: 'M5 12.5l4.5 4.5L19 7.5',
  edit: 'M4 20l1-4L16 5l3 3L8 19zM14 7l3 3',
  again: 'M20 5v5h-5M19.5 10a8 8 0 1 0 .3 4.5',
  left: 'M14.5 6l-6 6 6 6',
  right: 'M9.5 6l6 6-6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  more: 'M6 12h.01M12 12h.01M18 12h.01',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5',
  save: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4',
  monitor: 'M3 13h4l3-8 4 14 3-6h4',
  chat: 'M4 5h16v11H9l-5 4z',
  help: 'M9 9a3 3 0 1 1 4.2 2.8c-.8.3-1.2.9-1.2 2.2M12 17.5h.01',
  light: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6 19 19M5 19l1.4-1.4M17.6 6.4 19 5',
  dark: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  system: 'M4 5h16v11H4zM9 20h6',
  key: 'M14 10a4 4 0 1 0-3.5 4L12 13h2v-2h2v-1zM8 10h.01',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  const bold = name === 'more' ? 2.8 : 1.7;
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path
        d={PATHS[name]}
        fill={name === 'stop' ? 'currentColor' : 'none'}
        stroke="currentColor"
        stroke-width={bold}
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

/** Layers. */
export function Logo() {
  return (
    <svg class="logo" width="24" height="24" viewBox="0 0 24 24" aria-hidden="true">
      <path d="M12 2 2 7l10 5 10-5z" />
      <path class="second" d="m2 12 10 5 10-5-2.6-1.3-7.4 3.7-7.4-3.7z" />
      <path class="third" d="m2 17 10 5 10-5-2.6-1.3-7.4 3.7-7.4-3.7z" />
    </svg>
  );
}
