import { useState } from 'preact/hooks'
import { text } from '../texts/texts.ts'
import { Button } from './button.tsx'
import { announceFault } from './toasts.tsx'

const copiedMs = 1_500

export function CopyButton({
  value,
  label,
  quiet = false,
}: {
  value: string
  label?: string
  quiet?: boolean
}) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(value)
      setCopied(true)
      setTimeout(() => setCopied(false), copiedMs)
    } catch (error) {
      announceFault(error)
    }
  }
  return (
    <Button
      kind={quiet ? 'quiet' : 'plain'}
      size="small"
      icon={isCopied ? 'check' : 'copy'}
      onClick={() => void copy()}
    >
      {isCopied ? text('action.copied') : (label ?? text('action.copy'))}
    </Button>
  )
}

export function CodeBlock({ code, label }: { code: string; label: string }) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <figure aria-label={label} tabIndex={0}>
        <pre>
          <code>{code}</code>
        </pre>
      </figure>
      <span class="copy">
        <CopyButton value={code} />
      </span>
    </div>
  )
}
