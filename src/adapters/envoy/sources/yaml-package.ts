import { DrainableError } from '../../../provider/error.js'
import type { YamlPackage } from '../codec/yaml.js'

/** Whether Envoy reads that file as YAML. */
export function isYaml(path: string): boolean {
  return /\.ya?ml$/.test(path)
}

/**
 * The package `yaml`, an optional peer: imported when a file needs it, and never before.
 *
 * @throws `INVALID_OPTIONS` with the command that installs it
 */
export async function importYaml(
  path: string,
  load: () => Promise<YamlPackage> = () => import('yaml'),
): Promise<YamlPackage> {
  try {
    return await load()
  } catch (cause) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${path} is YAML, and the package 'yaml' that reads it can't be loaded: npm install yaml@2; or give Envoy and fileEndpoints() a .json file`,
      { provider: 'envoy', retryable: false, cause },
    )
  }
}
