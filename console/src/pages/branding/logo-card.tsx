import { useRef, useState } from 'preact/hooks'
import { call, send } from '../../api/call.ts'
import { loadTheme } from '../../shell/theme.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { useDrop } from '../../ui/drop.ts'
import { Fault, Notice } from '../../ui/notice.tsx'
import { Card } from '../../ui/page.tsx'
import { useAction } from '../../ui/query.ts'
import { announce, perform } from '../../ui/toasts.tsx'

const bytesMax = 524_288

type Uploaded = { readonly bytes: number; readonly sanitized: readonly string[] }

/** The logo on both backgrounds, a new one by a click or a drop, and the way back. */
export function LogoCard({ logo, onChange }: { logo: string; onChange: () => void }) {
  const input = useRef<HTMLInputElement>(null)
  const [fault, setFault] = useState<unknown>()
  const [sanitized, setSanitized] = useState<readonly string[]>([])
  const [isBusy, run] = useAction()
  const upload = (file: File | undefined) => {
    if (file === undefined) return
    void run(async () => {
      setSanitized([])
      try {
        if (file.size > bytesMax) {
          throw new Error(
            text('branding.logo_too_large', {
              size: format.bytes(file.size),
              max: format.bytes(bytesMax),
            }),
          )
        }
        const body = new FormData()
        body.set('file', file)
        const response = await send('POST /v1/branding/logo', { body })
        setSanitized(((await response.json()) as Uploaded).sanitized)
        setFault(undefined)
        announce(text('branding.logo_saved'))
        await loadTheme()
        onChange()
      } catch (error) {
        setFault(error)
      }
    })
  }
  const drop = useDrop(true, ({ files }) => upload(files[0]))
  const remove = async () => {
    const isSure = await confirm({
      title: text('branding.logo_remove_title'),
      consequence: text('branding.logo_remove_consequence'),
      action: text('branding.logo_remove'),
      isDangerous: true,
    })
    if (!isSure) return
    setSanitized([])
    await perform(() => call('DELETE /v1/branding/logo'), text('branding.logo_removed'))
    await loadTheme()
    onChange()
  }
  return (
    <Card title={text('branding.logo')}>
      <div class="logo-drop" data-over={drop.isOver} {...drop.handlers}>
        <span class="logo-shown light">
          <img src={logo} alt={text('branding.logo_on', { scheme: text('app.scheme.light') })} />
        </span>
        <span class="logo-shown dark">
          <img src={logo} alt={text('branding.logo_on', { scheme: text('app.scheme.dark') })} />
        </span>
        <div class="stack tight grow">
          <p class="small muted">{text('branding.logo_hint')}</p>
          <div class="row">
            <Button disabled={isBusy} onClick={() => input.current?.click()}>
              {text('branding.logo_upload')}
            </Button>
            <Button kind="quiet" icon="trash" disabled={isBusy} onClick={() => void remove()}>
              {text('branding.logo_remove')}
            </Button>
          </div>
          <input
            ref={input}
            class="visually-hidden"
            type="file"
            accept="image/svg+xml,image/png,image/webp"
            aria-label={text('branding.logo_file')}
            tabIndex={-1}
            onChange={(event) => {
              upload(event.currentTarget.files?.[0])
              event.currentTarget.value = ''
            }}
          />
        </div>
      </div>
      {fault !== undefined && <Fault error={fault} />}
      {sanitized.length > 0 && (
        <Notice kind="warn">{text('branding.sanitized', { parts: sanitized.join(', ') })}</Notice>
      )}
    </Card>
  )
}
