import { useEffect, useState } from 'preact/hooks'
import { call, callTagged } from '../../api/call.ts'
import type { Theme, ThemePreview } from '../../api/generated/types.ts'
import { loadTheme } from '../../shell/theme.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { Fault } from '../../ui/notice.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { useAction, useQuery } from '../../ui/query.ts'
import { announce, perform } from '../../ui/toasts.tsx'
import { Contrast } from './contrast.tsx'
import { LogoCard } from './logo-card.tsx'
import { BrandPreview } from './preview.tsx'
import { isColor, type PlainTheme, ThemeForm } from './theme-form.tsx'

/** After the last key, the preview is asked for. */
const previewDelayMs = 250

export function BrandingPage() {
  const query = useQuery((signal) => callTagged('GET /v1/branding/theme', { signal }), 'theme')
  const reset = async () => {
    const isSure = await confirm({
      title: text('branding.reset_title'),
      consequence: text('branding.reset_consequence'),
      action: text('branding.reset'),
      isDangerous: true,
    })
    if (!isSure) return
    await perform(
      () => call('POST /v1/branding/theme/reset', { body: {} }),
      text('branding.was_reset'),
    )
    await loadTheme()
    query.reload()
  }
  return (
    <Page
      title={text('branding.title')}
      about={text('branding.about')}
      actions={<Button onClick={() => void reset()}>{text('branding.reset')}</Button>}
    >
      {query.error !== undefined && <Fault error={query.error} onRetry={query.reload} />}
      {query.data === undefined ? (
        query.error === undefined && <div class="card skeleton chart" />
      ) : (
        <SavedTheme theme={query.data.data as Theme} tag={query.data.tag} onSaved={query.reload} />
      )}
    </Page>
  )
}

/** A new logo changes the tag, and neither the draft nor what was removed from the logo may be lost. */
function SavedTheme({ theme, ...rest }: { theme: Theme; tag: string | null; onSaved: () => void }) {
  const { logo_url: logo, ...stored } = theme
  return <Editor key={JSON.stringify(stored)} stored={stored} logo={logo} {...rest} />
}

function Editor({
  stored,
  logo,
  tag,
  onSaved,
}: {
  stored: PlainTheme
  logo: string
  tag: string | null
  onSaved: () => void
}) {
  const [draft, setDraft] = useState<PlainTheme>(stored)
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const preview = usePreview(draft)
  const isChanged = JSON.stringify(draft) !== JSON.stringify(stored)
  const save = () =>
    run(async () => {
      try {
        await call('PUT /v1/branding/theme', {
          body: draft,
          ...(tag === null ? {} : { headers: { 'if-match': tag } }),
        })
        announce(text('branding.saved'))
        setFault(undefined)
        await loadTheme()
        onSaved()
      } catch (error) {
        setFault(error)
      }
    })
  const failing = preview.data?.contrast.filter(({ pass }) => !pass) ?? []
  const shown = preview.data?.theme ?? stored
  const setColour = (field: string, colour: string) => {
    const [scheme, name = ''] = field.split('.') as ['light' | 'dark', string]
    const colors = { ...draft.colors, [scheme]: { ...draft.colors[scheme], [name]: colour } }
    setDraft({ ...draft, colors })
  }
  return (
    <div class="branding">
      <div class="stack">
        <ThemeForm theme={draft} onTheme={setDraft} failing={failing.map(({ pair }) => pair)} />
        <LogoCard logo={logo} onChange={onSaved} />
      </div>
      <div class="stack branding-aside">
        <Card title={text('branding.preview')}>
          <div class="stack">
            {(['light', 'dark'] as const).map((scheme) => (
              <BrandPreview key={scheme} theme={shown} logo={logo} scheme={scheme} />
            ))}
          </div>
        </Card>
        <Card title={text('branding.contrast')}>
          {preview.error !== undefined && <Fault error={preview.error} />}
          {preview.data !== undefined && (
            <Contrast pairs={preview.data.contrast} onUse={setColour} />
          )}
        </Card>
      </div>
      {fault !== undefined && (
        <div class="branding-wide">
          <Fault error={fault} onRetry={onSaved} />
        </div>
      )}
      {isChanged && (
        <section class="save-bar branding-wide" aria-label={text('settings.unsaved')}>
          <span class="grow" role="status">
            {failing.length === 0
              ? text('settings.unsaved')
              : text('branding.failing', { count: failing.length })}
          </span>
          <Button onClick={() => setDraft(stored)}>{text('settings.discard')}</Button>
          <Button
            kind="primary"
            disabled={isBusy || preview.error !== undefined}
            onClick={() => void save()}
          >
            {text('action.save')}
          </Button>
        </section>
      )}
    </div>
  )
}

/** The theme as the API would complete it, with its contrasts; the last one stays until the next. */
function usePreview(draft: PlainTheme): { data: ThemePreview | undefined; error: unknown } {
  const [state, setState] = useState<{ data: ThemePreview | undefined; error: unknown }>({
    data: undefined,
    error: undefined,
  })
  useEffect(() => {
    const isReady = Object.values(draft.colors).every((palette) =>
      Object.values(palette).every(isColor),
    )
    if (!isReady) return
    const controller = new AbortController()
    const timer = setTimeout(() => {
      call('POST /v1/branding/theme/preview', { body: draft, signal: controller.signal }).then(
        (data) => setState({ data, error: undefined }),
        (error: unknown) => {
          if (!controller.signal.aborted) setState(({ data }) => ({ data, error }))
        },
      )
    }, previewDelayMs)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [draft])
  return state
}
