import type { DesignTokens } from './answer-schema.ts'
import { fromHex } from './colors/color.ts'
import { type ColorName, colorNames, type Scheme, type Theme } from './theme.ts'

/** The theme in the format of the Design Tokens Community Group, 2025.10. */
export function designTokens({ colors, radiusPx, fonts, fontScale }: Theme): DesignTokens {
  const group = (scheme: Scheme) =>
    Object.fromEntries(
      colorNames.map((name) => [name, { $value: colorToken(colors[scheme][name]) }]),
    ) as Record<ColorName, { $value: ReturnType<typeof colorToken> }>
  return {
    color: { $type: 'color', light: group('light'), dark: group('dark') },
    radius: { $type: 'dimension', $value: { value: radiusPx, unit: 'px' } },
    font: {
      family: { $type: 'fontFamily', $value: [...fonts] },
      scale: { $type: 'number', $value: fontScale },
    },
  }
}

/** Enough for eight bits, and short to read. */
const decimals = 4

function colorToken(hex: string) {
  const { rgb, alpha } = fromHex(hex)
  const rounded = (part: number) => Number(part.toFixed(decimals))
  return {
    colorSpace: 'srgb' as const,
    components: rgb.map(rounded),
    alpha: rounded(alpha),
    hex: hex.slice(0, 7),
  }
}
