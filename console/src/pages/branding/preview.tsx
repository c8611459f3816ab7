import { text } from '../../texts/texts.ts'
import type { PlainTheme } from './theme-form.tsx'

/** A piece of a page in the colours of a theme. It is a picture: nothing in it can be used. */
export function BrandPreview({
  theme,
  logo,
  scheme,
}: {
  theme: PlainTheme
  logo: string
  scheme: 'light' | 'dark'
}) {
  const colours = theme.colors[scheme]
  return (
    <div
      class="brand-preview"
      role="img"
      aria-label={text('branding.preview_of', { scheme: text(`app.scheme.${scheme}`) })}
      style={{
        'color-scheme': scheme,
        'font-family': theme.font_family,
        '--accent': colours.primary,
        '--on-accent': colours.on_primary,
        '--paper': colours.background,
        '--raised': colours.surface,
        '--ink': colours.text,
        '--muted': colours.muted,
        '--edge': colours.border,
        '--good': colours.success,
        '--warn': colours.warning,
        '--bad': colours.danger,
        '--radius': `${theme.radius_px}px`,
        '--font-scale': String(theme.font_scale),
      }}
    >
      <div class="brand-preview-rail">
        <span class="brand">
          <img src={logo} alt="" />
          {theme.product_name}
        </span>
        <span class="brand-preview-link">{text('start.title')}</span>
        <span>{text('playground.title')}</span>
      </div>
      <div class="stack tight">
        <strong>{text('branding.sample_title')}</strong>
        <span class="muted">{text('branding.sample_text')}</span>
        <span class="row">
          <span class="button primary">{text('action.save')}</span>
          <span class="button">{text('action.cancel')}</span>
        </span>
        <span class="input">{text('branding.sample_input')}</span>
        <span class="row small">
          <span class="status good">{text('branding.colour.success')}</span>
          <span class="status warn">{text('branding.colour.warning')}</span>
          <span class="status bad">{text('branding.colour.danger')}</span>
          <span class="tag">demo</span>
        </span>
      </div>
    </div>
  )
}
