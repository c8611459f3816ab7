/** The look of the portal. */
export type Theme = {
  readonly productName: string
  /** `system` follows the preference of the device. */
  readonly mode: Mode
  readonly colors: Readonly<Record<Scheme, Palette>>
  readonly radiusPx: number
  /** Font families in order of preference. */
  readonly fonts: readonly string[]
  /** Multiplies all text sizes. */
  readonly fontScale: number
}

type Mode = Scheme | 'system'
export type Scheme = (typeof schemes)[number]
/** Each as `#rrggbb` or `#rrggbbaa`, in lower case. */
export type Palette = Readonly<Record<ColorName, string>>
export type ColorName = (typeof colorNames)[number]

export const schemes = ['light', 'dark'] as const
export const colorNames = [
  'primary',
  'on_primary',
  'background',
  'surface',
  'text',
  'muted',
  'border',
  'success',
  'warning',
  'danger',
] as const

/** Passes every contrast check. */
export const defaultTheme: Theme = {
  productName: 'Sluice',
  mode: 'system',
  colors: {
    light: {
      primary: '#2557d6',
      on_primary: '#ffffff',
      background: '#ffffff',
      surface: '#f4f6fa',
      text: '#1b2230',
      muted: '#5a6475',
      border: '#c9d0dc',
      success: '#1a7f4b',
      warning: '#9a5b00',
      danger: '#c22f3d',
    },
    dark: {
      primary: '#8ab0ff',
      on_primary: '#0b1a3a',
      background: '#11151d',
      surface: '#1a202c',
      text: '#e8ecf3',
      muted: '#a3adbd',
      border: '#3a4456',
      success: '#5fd39a',
      warning: '#f0b45a',
      danger: '#ff8a8f',
    },
  },
  radiusPx: 8,
  fonts: ['system-ui', 'sans-serif'],
  fontScale: 1,
}
