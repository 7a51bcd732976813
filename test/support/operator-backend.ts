/** The balancers that examples/operator is played on, by plain data: a child process opens the same ones. */
import { citrixAdc, type CitrixAdcOptions } from 'drainable/citrix-adc'
import { f5Bigip, type F5BigipOptions } from 'drainable/f5-bigip'
import { haproxyRuntime, type HaproxyRuntimeOptions } from 'drainable/haproxy-runtime'
import type { Backend } from '../../examples/operator/operator.js'

export type Settings = { readonly pool: string } & (
  | { readonly haproxy: HaproxyRuntimeOptions }
  | { readonly f5: F5BigipOptions }
  | { readonly citrix: CitrixAdcOptions }
)

export function backendOf(settings: Settings): Backend {
  const { pool } = settings
  if ('haproxy' in settings) return { provider: haproxyRuntime(settings.haproxy), pool }
  if ('f5' in settings) return { provider: f5Bigip(settings.f5), pool }
  return { provider: citrixAdc(settings.citrix), pool }
}
