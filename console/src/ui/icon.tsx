/** Strokes on a 20 × 20 grid. */
const paths = {
  start: 'M3 9.5 10 4l7 5.5V16a1 1 0 0 1-1 1h-3.5v-5h-5v5H4a1 1 0 0 1-1-1z',
  playground: 'M4 5h12M4 10h7M4 15h4M14 12l3 2.5-3 2.5z',
  models: 'M10 3 4 6.2v7.6L10 17l6-3.2V6.2zM4 6.2l6 3.3 6-3.3M10 9.5V17',
  keys: 'M11.5 8.5 17 3M14.5 5.5l2 2M12 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0z',
  groups:
    'M7.5 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 16c0-2.5 2-4.5 4.5-4.5S12 13.5 12 16M13 9.500a2.2 2.2 0 1 0-1-4.200M13.5 12c2 .2 3.5 1.8 3.5 4',
  users: 'M10 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4.5 16.5c0-2.8 2.5-4.5 5.5-4.5s5.5 1.7 5.5 4.5',
  usage: 'M4 16V9M8 16V4M12 16v-5M16 16V7',
  limits: 'M3.5 14a7 7 0 1 1 13 0M10 13l3-4.5',
  files: 'M3 6a1 1 0 0 1 1-1h4l2 2h6a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1z',
  speech:
    'M10 3.500a2 2 0 0 1 2 2v4a2 2 0 1 1-4 0v-4a2 2 0 0 1 2-2zM5.5 9.500a4.5 4.5 0 0 0 9 0M10 14v3',
  settings: 'M4 6h7M15 6h1M4 14h1M9 14h7M13 4.300v3.400M7 12.300v3.4',
  branding:
    'M10 3.500a6.5 6.5 0 1 0 0 13c1.5 0 1.5-1.5 1-2.3-.5-1 .2-2 1.3-2H14a2.5 2.5 0 0 0 2.5-2.500C16.5 6 13.6 3.5 10 3.500zM7 8h.01M10 6.500h.01M13 8h.01',
  audit:
    'M6 3.500h6l3 3V16a.5.5 0 0 1-.5.500h-8.500A.5.5 0 0 1 5.5 16V4a.5.5 0 0 1 .5-.500zM8 9h5M8 12h5',
  traffic: 'M3 7h11l-3-3M17 13H6l3 3',
  translations:
    'M3 5h8M7 3v2M9.5 5C9 8.500 6.500 10.500 3.500 11.500M5 7.500c1 2 3 3.300 5 4M10.500 17l3.500-8 3.500 8M11.700 14.500h4.600',
  copy: 'M7 7V4.500h8.500V13H13M4.5 7H13v8.500H4.500z',
  check: 'm4 10.5 4 4 8-9',
  cross: 'm5 5 10 10M15 5 5 15',
  plus: 'M10 4v12M4 10h12',
  warning: 'M10 3.5 17.5 16h-15zM10 8v4M10 14h.01',
  info: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM10 9v5M10 6.500h.01',
  refresh:
    'M16 6v4h-4M4 14v-4h4M5 8a5.5 5.5 0 0 1 9.5-1.500L16 10M15 12a5.5 5.5 0 0 1-9.5 1.500L4 10',
  menu: 'M3 6h14M3 10h14M3 14h14',
  send: 'M3 10 17 4l-4 13-3-5z',
  stop: 'M6 6h8v8H6z',
  sun: 'M10 13a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM10 3v1.500M10 15.500V17M3 10h1.500M15.5 10H17M5 5l1 1M14 14l1 1M15 5l-1 1M6 14l-1 1',
  moon: 'M16 11.500A6.5 6.5 0 0 1 8.5 4a6.5 6.5 0 1 0 7.5 7.500z',
  screen: 'M3 4.500h14v9H3zM7 16.500h6',
  leave: 'M12 6V4H4v12h8v-2M8 10h9M14 7l3 3-3 3',
  trash: 'M4 6h12M8 6V4h4v2M6 6l.7 10h6.600L14 6',
  attach: 'm14.5 9-5 5a3 3 0 0 1-4.3-4.300l6-6a2 2 0 0 1 2.900 2.900l-6 6a1 1 0 0 1-1.4-1.400L12 6',
  download: 'M10 3v10M6 9.500l4 4 4-4M4 17h12',
  upload: 'M10 14V4M6 7.500l4-4 4 4M4 17h12',
  move: 'M3 6a1 1 0 0 1 1-1h4l2 2h6a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1zM8 11.500h5M11 9l2.500 2.500L11 14',
  search: 'M9 14.500a5.500 5.500 0 1 0 0-11 5.500 5.500 0 0 0 0 11zM13 13l4 4',
  agent:
    'M5 8h10a1.500 1.500 0 0 1 1.500 1.500v5A1.500 1.500 0 0 1 15 16H5a1.500 1.500 0 0 1-1.500-1.500v-5A1.500 1.500 0 0 1 5 8zM10 8V4.500M7.500 12h.01M12.500 12h.01',
  pause: 'M7 5v10M13 5v10',
  voice:
    'M4 8v4h2.500L10 15.500v-11L6.500 8zM12.500 8a3 3 0 0 1 0 4M14.500 5.500a6.500 6.500 0 0 1 0 9',
  code: 'm7 6-4 4 4 4M13 6l4 4-4 4',
  play: 'M6 4.5 15 10l-9 5.500z',
  chevron: 'm7 4 6 6-6 6',
  edit: 'm4 16 .7-3.300L13 4.400l2.6 2.6-8.3 8.300z',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      <path d={paths[name]} />
    </svg>
  )
}
