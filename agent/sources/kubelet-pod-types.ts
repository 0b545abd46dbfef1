// The fields of a pod as kubelets 1.34 hold it (k8s.io/kubernetes/pkg/apis/core at v1.34.2), which the uid of a static pod
// is made from: one line for each struct, "name|field key type, …" in the order of the struct. The key is the field's name
// in JSON; "." is a struct whose fields are those of the one around it. A type that has another beneath it says so with "=".
// Facts only; kubelet-static-uid.ts reads them.

export const POD_TYPES = `
core.AWSElasticBlockStoreVolumeSource|VolumeID volumeID string, FSType fsType string, Partition partition int32, ReadOnly readOnly bool
core.Affinity|NodeAffinity nodeAffinity *core.NodeAffinity, PodAffinity podAffinity *core.PodAffinity, PodAntiAffinity podAntiAffinity *core.PodAntiAffinity
core.AppArmorProfile|Type type core.AppArmorProfileType=string, LocalhostProfile localhostProfile *string
core.AzureDiskVolumeSource|DiskName diskName string, DataDiskURI diskURI string, CachingMode cachingMode *core.AzureDataDiskCachingMode=string, FSType fsType *string, ReadOnly readOnly *bool, Kind kind *core.AzureDataDiskKind=string
core.AzureFileVolumeSource|SecretName secretName string, ShareName shareName string, ReadOnly readOnly bool
core.CSIVolumeSource|Driver driver string, ReadOnly readOnly *bool, FSType fsType *string, VolumeAttributes volumeAttributes map[string]string, NodePublishSecretRef nodePublishSecretRef *core.LocalObjectReference
core.Capabilities|Add add []core.Capability=string, Drop drop []core.Capability=string
core.CephFSVolumeSource|Monitors monitors []string, Path path string, User user string, SecretFile secretFile string, SecretRef secretRef *core.LocalObjectReference, ReadOnly readOnly bool
core.CinderVolumeSource|VolumeID volumeID string, FSType fsType string, ReadOnly readOnly bool, SecretRef secretRef *core.LocalObjectReference
core.ClusterTrustBundleProjection|Name name *string, SignerName signerName *string, LabelSelector labelSelector *v1.LabelSelector, Optional optional *bool, Path path string
core.ConfigMapEnvSource|LocalObjectReference . core.LocalObjectReference, Optional optional *bool
core.ConfigMapKeySelector|LocalObjectReference . core.LocalObjectReference, Key key string, Optional optional *bool
core.ConfigMapProjection|LocalObjectReference . core.LocalObjectReference, Items items []core.KeyToPath, Optional optional *bool
core.ConfigMapVolumeSource|LocalObjectReference . core.LocalObjectReference, Items items []core.KeyToPath, DefaultMode defaultMode *int32, Optional optional *bool
core.Container|Name name string, Image image string, Command command []string, Args args []string, WorkingDir workingDir string, Ports ports []core.ContainerPort, EnvFrom envFrom []core.EnvFromSource, Env env []core.EnvVar, Resources resources core.ResourceRequirements, ResizePolicy resizePolicy []core.ContainerResizePolicy, RestartPolicy restartPolicy *core.ContainerRestartPolicy=string, RestartPolicyRules restartPolicyRules []core.ContainerRestartRule, VolumeMounts volumeMounts []core.VolumeMount, VolumeDevices volumeDevices []core.VolumeDevice, LivenessProbe livenessProbe *core.Probe, ReadinessProbe readinessProbe *core.Probe, StartupProbe startupProbe *core.Probe, Lifecycle lifecycle *core.Lifecycle, TerminationMessagePath terminationMessagePath string, TerminationMessagePolicy terminationMessagePolicy core.TerminationMessagePolicy=string, ImagePullPolicy imagePullPolicy core.PullPolicy=string, SecurityContext securityContext *core.SecurityContext, Stdin stdin bool, StdinOnce stdinOnce bool, TTY tty bool
core.ContainerPort|Name name string, HostPort hostPort int32, ContainerPort containerPort int32, Protocol protocol core.Protocol=string, HostIP hostIP string
core.ContainerResizePolicy|ResourceName resourceName core.ResourceName=string, RestartPolicy restartPolicy core.ResourceResizeRestartPolicy=string
core.ContainerRestartRule|Action action core.ContainerRestartRuleAction=string, ExitCodes exitCodes *core.ContainerRestartRuleOnExitCodes
core.ContainerRestartRuleOnExitCodes|Operator operator core.ContainerRestartRuleOnExitCodesOperator=string, Values values []int32
core.DownwardAPIProjection|Items items []core.DownwardAPIVolumeFile
core.DownwardAPIVolumeFile|Path path string, FieldRef fieldRef *core.ObjectFieldSelector, ResourceFieldRef resourceFieldRef *core.ResourceFieldSelector, Mode mode *int32
core.DownwardAPIVolumeSource|Items items []core.DownwardAPIVolumeFile, DefaultMode defaultMode *int32
core.EmptyDirVolumeSource|Medium medium core.StorageMedium=string, SizeLimit sizeLimit *resource.Quantity
core.EnvFromSource|Prefix prefix string, ConfigMapRef configMapRef *core.ConfigMapEnvSource, SecretRef secretRef *core.SecretEnvSource
core.EnvVar|Name name string, Value value string, ValueFrom valueFrom *core.EnvVarSource
core.EnvVarSource|FieldRef fieldRef *core.ObjectFieldSelector, ResourceFieldRef resourceFieldRef *core.ResourceFieldSelector, ConfigMapKeyRef configMapKeyRef *core.ConfigMapKeySelector, SecretKeyRef secretKeyRef *core.SecretKeySelector, FileKeyRef fileKeyRef *core.FileKeySelector
core.EphemeralContainer|EphemeralContainerCommon . core.EphemeralContainerCommon, TargetContainerName targetContainerName string
core.EphemeralContainerCommon|Name name string, Image image string, Command command []string, Args args []string, WorkingDir workingDir string, Ports ports []core.ContainerPort, EnvFrom envFrom []core.EnvFromSource, Env env []core.EnvVar, Resources resources core.ResourceRequirements, ResizePolicy resizePolicy []core.ContainerResizePolicy, RestartPolicy restartPolicy *core.ContainerRestartPolicy=string, RestartPolicyRules restartPolicyRules []core.ContainerRestartRule, VolumeMounts volumeMounts []core.VolumeMount, VolumeDevices volumeDevices []core.VolumeDevice, LivenessProbe livenessProbe *core.Probe, ReadinessProbe readinessProbe *core.Probe, StartupProbe startupProbe *core.Probe, Lifecycle lifecycle *core.Lifecycle, TerminationMessagePath terminationMessagePath string, TerminationMessagePolicy terminationMessagePolicy core.TerminationMessagePolicy=string, ImagePullPolicy imagePullPolicy core.PullPolicy=string, SecurityContext securityContext *core.SecurityContext, Stdin stdin bool, StdinOnce stdinOnce bool, TTY tty bool
core.EphemeralVolumeSource|VolumeClaimTemplate volumeClaimTemplate *core.PersistentVolumeClaimTemplate
core.ExecAction|Command command []string
core.FCVolumeSource|TargetWWNs targetWWNs []string, Lun lun *int32, FSType fsType string, ReadOnly readOnly bool, WWIDs wwids []string
core.FileKeySelector|VolumeName volumeName string, Path path string, Key key string, Optional optional *bool
core.FlexVolumeSource|Driver driver string, FSType fsType string, SecretRef secretRef *core.LocalObjectReference, ReadOnly readOnly bool, Options options map[string]string
core.FlockerVolumeSource|DatasetName datasetName string, DatasetUUID datasetUUID string
core.GCEPersistentDiskVolumeSource|PDName pdName string, FSType fsType string, Partition partition int32, ReadOnly readOnly bool
core.GRPCAction|Port port int32, Service service *string
core.GitRepoVolumeSource|Repository repository string, Revision revision string, Directory directory string
core.GlusterfsVolumeSource|EndpointsName endpoints string, Path path string, ReadOnly readOnly bool
core.HTTPGetAction|Path path string, Port port intstr.IntOrString, Host host string, Scheme scheme core.URIScheme=string, HTTPHeaders httpHeaders []core.HTTPHeader
core.HTTPHeader|Name name string, Value value string
core.HostAlias|IP ip string, Hostnames hostnames []string
core.HostPathVolumeSource|Path path string, Type type *core.HostPathType=string
core.ISCSIVolumeSource|TargetPortal targetPortal string, IQN iqn string, Lun lun int32, ISCSIInterface iscsiInterface string, FSType fsType string, ReadOnly readOnly bool, Portals portals []string, DiscoveryCHAPAuth chapAuthDiscovery bool, SessionCHAPAuth chapAuthSession bool, SecretRef secretRef *core.LocalObjectReference, InitiatorName initiatorName *string
core.ImageVolumeSource|Reference reference string, PullPolicy pullPolicy core.PullPolicy=string
core.KeyToPath|Key key string, Path path string, Mode mode *int32
core.Lifecycle|PostStart postStart *core.LifecycleHandler, PreStop preStop *core.LifecycleHandler, StopSignal stopSignal *core.Signal=string
core.LifecycleHandler|Exec exec *core.ExecAction, HTTPGet httpGet *core.HTTPGetAction, TCPSocket tcpSocket *core.TCPSocketAction, Sleep sleep *core.SleepAction
core.LocalObjectReference|Name name string
core.NFSVolumeSource|Server server string, Path path string, ReadOnly readOnly bool
core.NodeAffinity|RequiredDuringSchedulingIgnoredDuringExecution requiredDuringSchedulingIgnoredDuringExecution *core.NodeSelector, PreferredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution []core.PreferredSchedulingTerm
core.NodeSelector|NodeSelectorTerms nodeSelectorTerms []core.NodeSelectorTerm
core.NodeSelectorRequirement|Key key string, Operator operator core.NodeSelectorOperator=string, Values values []string
core.NodeSelectorTerm|MatchExpressions matchExpressions []core.NodeSelectorRequirement, MatchFields matchFields []core.NodeSelectorRequirement
core.ObjectFieldSelector|APIVersion apiVersion string, FieldPath fieldPath string
core.PersistentVolumeClaimSpec|AccessModes accessModes []core.PersistentVolumeAccessMode=string, Selector selector *v1.LabelSelector, Resources resources core.VolumeResourceRequirements, VolumeName volumeName string, StorageClassName storageClassName *string, VolumeMode volumeMode *core.PersistentVolumeMode=string, DataSource dataSource *core.TypedLocalObjectReference, DataSourceRef dataSourceRef *core.TypedObjectReference, VolumeAttributesClassName volumeAttributesClassName *string
core.PersistentVolumeClaimTemplate|ObjectMeta . v1.ObjectMeta, Spec spec core.PersistentVolumeClaimSpec
core.PersistentVolumeClaimVolumeSource|ClaimName claimName string, ReadOnly readOnly bool
core.PhotonPersistentDiskVolumeSource|PdID pdID string, FSType fsType string
core.PodAffinity|RequiredDuringSchedulingIgnoredDuringExecution requiredDuringSchedulingIgnoredDuringExecution []core.PodAffinityTerm, PreferredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution []core.WeightedPodAffinityTerm
core.PodAffinityTerm|LabelSelector labelSelector *v1.LabelSelector, Namespaces namespaces []string, TopologyKey topologyKey string, NamespaceSelector namespaceSelector *v1.LabelSelector, MatchLabelKeys matchLabelKeys []string, MismatchLabelKeys mismatchLabelKeys []string
core.PodAntiAffinity|RequiredDuringSchedulingIgnoredDuringExecution requiredDuringSchedulingIgnoredDuringExecution []core.PodAffinityTerm, PreferredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution []core.WeightedPodAffinityTerm
core.PodCertificateProjection|SignerName signerName string, KeyType keyType string, MaxExpirationSeconds maxExpirationSeconds *int32, CredentialBundlePath credentialBundlePath string, KeyPath keyPath string, CertificateChainPath certificateChainPath string
core.PodDNSConfig|Nameservers nameservers []string, Searches searches []string, Options options []core.PodDNSConfigOption
core.PodDNSConfigOption|Name name string, Value value *string
core.PodOS|Name name core.OSName=string
core.PodReadinessGate|ConditionType conditionType core.PodConditionType=string
core.PodResourceClaim|Name name string, ResourceClaimName resourceClaimName *string, ResourceClaimTemplateName resourceClaimTemplateName *string
core.PodSchedulingGate|Name name string
core.PodSecurityContext|HostNetwork hostNetwork bool, HostPID hostPID bool, HostIPC hostIPC bool, ShareProcessNamespace shareProcessNamespace *bool, HostUsers hostUsers *bool, SELinuxOptions seLinuxOptions *core.SELinuxOptions, WindowsOptions windowsOptions *core.WindowsSecurityContextOptions, RunAsUser runAsUser *int64, RunAsGroup runAsGroup *int64, RunAsNonRoot runAsNonRoot *bool, SupplementalGroups supplementalGroups []int64, SupplementalGroupsPolicy supplementalGroupsPolicy *core.SupplementalGroupsPolicy=string, FSGroup fsGroup *int64, FSGroupChangePolicy fsGroupChangePolicy *core.PodFSGroupChangePolicy=string, Sysctls sysctls []core.Sysctl, SeccompProfile seccompProfile *core.SeccompProfile, AppArmorProfile appArmorProfile *core.AppArmorProfile, SELinuxChangePolicy seLinuxChangePolicy *core.PodSELinuxChangePolicy=string
core.PodSpec|Volumes volumes []core.Volume, InitContainers initContainers []core.Container, Containers containers []core.Container, EphemeralContainers ephemeralContainers []core.EphemeralContainer, RestartPolicy restartPolicy core.RestartPolicy=string, TerminationGracePeriodSeconds terminationGracePeriodSeconds *int64, ActiveDeadlineSeconds activeDeadlineSeconds *int64, DNSPolicy dnsPolicy core.DNSPolicy=string, NodeSelector nodeSelector map[string]string, ServiceAccountName serviceAccountName string, AutomountServiceAccountToken automountServiceAccountToken *bool, NodeName nodeName string, SecurityContext securityContext *core.PodSecurityContext, ImagePullSecrets imagePullSecrets []core.LocalObjectReference, Hostname hostname string, Subdomain subdomain string, SetHostnameAsFQDN setHostnameAsFQDN *bool, Affinity affinity *core.Affinity, SchedulerName schedulerName string, Tolerations tolerations []core.Toleration, HostAliases hostAliases []core.HostAlias, PriorityClassName priorityClassName string, Priority priority *int32, PreemptionPolicy preemptionPolicy *core.PreemptionPolicy=string, DNSConfig dnsConfig *core.PodDNSConfig, ReadinessGates readinessGates []core.PodReadinessGate, RuntimeClassName runtimeClassName *string, Overhead overhead core.ResourceList, EnableServiceLinks enableServiceLinks *bool, TopologySpreadConstraints topologySpreadConstraints []core.TopologySpreadConstraint, OS os *core.PodOS, SchedulingGates schedulingGates []core.PodSchedulingGate, ResourceClaims resourceClaims []core.PodResourceClaim, Resources resources *core.ResourceRequirements, HostnameOverride hostnameOverride *string
core.PortworxVolumeSource|VolumeID volumeID string, FSType fsType string, ReadOnly readOnly bool
core.PreferredSchedulingTerm|Weight weight int32, Preference preference core.NodeSelectorTerm
core.Probe|ProbeHandler . core.ProbeHandler, InitialDelaySeconds initialDelaySeconds int32, TimeoutSeconds timeoutSeconds int32, PeriodSeconds periodSeconds int32, SuccessThreshold successThreshold int32, FailureThreshold failureThreshold int32, TerminationGracePeriodSeconds terminationGracePeriodSeconds *int64
core.ProbeHandler|Exec exec *core.ExecAction, HTTPGet httpGet *core.HTTPGetAction, TCPSocket tcpSocket *core.TCPSocketAction, GRPC grpc *core.GRPCAction
core.ProjectedVolumeSource|Sources sources []core.VolumeProjection, DefaultMode defaultMode *int32
core.QuobyteVolumeSource|Registry registry string, Volume volume string, ReadOnly readOnly bool, User user string, Group group string, Tenant tenant string
core.RBDVolumeSource|CephMonitors monitors []string, RBDImage image string, FSType fsType string, RBDPool pool string, RadosUser user string, Keyring keyring string, SecretRef secretRef *core.LocalObjectReference, ReadOnly readOnly bool
core.ResourceClaim|Name name string, Request request string
core.ResourceFieldSelector|ContainerName containerName string, Resource resource string, Divisor divisor resource.Quantity
core.ResourceRequirements|Limits limits core.ResourceList, Requests requests core.ResourceList, Claims claims []core.ResourceClaim
core.SELinuxOptions|User user string, Role role string, Type type string, Level level string
core.ScaleIOVolumeSource|Gateway gateway string, System system string, SecretRef secretRef *core.LocalObjectReference, SSLEnabled sslEnabled bool, ProtectionDomain protectionDomain string, StoragePool storagePool string, StorageMode storageMode string, VolumeName volumeName string, FSType fsType string, ReadOnly readOnly bool
core.SeccompProfile|Type type core.SeccompProfileType=string, LocalhostProfile localhostProfile *string
core.SecretEnvSource|LocalObjectReference . core.LocalObjectReference, Optional optional *bool
core.SecretKeySelector|LocalObjectReference . core.LocalObjectReference, Key key string, Optional optional *bool
core.SecretProjection|LocalObjectReference . core.LocalObjectReference, Items items []core.KeyToPath, Optional optional *bool
core.SecretVolumeSource|SecretName secretName string, Items items []core.KeyToPath, DefaultMode defaultMode *int32, Optional optional *bool
core.SecurityContext|Capabilities capabilities *core.Capabilities, Privileged privileged *bool, SELinuxOptions seLinuxOptions *core.SELinuxOptions, WindowsOptions windowsOptions *core.WindowsSecurityContextOptions, RunAsUser runAsUser *int64, RunAsGroup runAsGroup *int64, RunAsNonRoot runAsNonRoot *bool, ReadOnlyRootFilesystem readOnlyRootFilesystem *bool, AllowPrivilegeEscalation allowPrivilegeEscalation *bool, ProcMount procMount *core.ProcMountType=string, SeccompProfile seccompProfile *core.SeccompProfile, AppArmorProfile appArmorProfile *core.AppArmorProfile
core.ServiceAccountTokenProjection|Audience audience string, ExpirationSeconds expirationSeconds int64, Path path string
core.SleepAction|Seconds seconds int64
core.StorageOSVolumeSource|VolumeName volumeName string, VolumeNamespace volumeNamespace string, FSType fsType string, ReadOnly readOnly bool, SecretRef secretRef *core.LocalObjectReference
core.Sysctl|Name name string, Value value string
core.TCPSocketAction|Port port intstr.IntOrString, Host host string
core.Toleration|Key key string, Operator operator core.TolerationOperator=string, Value value string, Effect effect core.TaintEffect=string, TolerationSeconds tolerationSeconds *int64
core.TopologySpreadConstraint|MaxSkew maxSkew int32, TopologyKey topologyKey string, WhenUnsatisfiable whenUnsatisfiable core.UnsatisfiableConstraintAction=string, LabelSelector labelSelector *v1.LabelSelector, MinDomains minDomains *int32, NodeAffinityPolicy nodeAffinityPolicy *core.NodeInclusionPolicy=string, NodeTaintsPolicy nodeTaintsPolicy *core.NodeInclusionPolicy=string, MatchLabelKeys matchLabelKeys []string
core.TypedLocalObjectReference|APIGroup apiGroup *string, Kind kind string, Name name string
core.TypedObjectReference|APIGroup apiGroup *string, Kind kind string, Name name string, Namespace namespace *string
core.Volume|Name name string, VolumeSource . core.VolumeSource
core.VolumeDevice|Name name string, DevicePath devicePath string
core.VolumeMount|Name name string, ReadOnly readOnly bool, RecursiveReadOnly recursiveReadOnly *core.RecursiveReadOnlyMode=string, MountPath mountPath string, SubPath subPath string, MountPropagation mountPropagation *core.MountPropagationMode=string, SubPathExpr subPathExpr string
core.VolumeProjection|Secret secret *core.SecretProjection, DownwardAPI downwardAPI *core.DownwardAPIProjection, ConfigMap configMap *core.ConfigMapProjection, ServiceAccountToken serviceAccountToken *core.ServiceAccountTokenProjection, ClusterTrustBundle clusterTrustBundle *core.ClusterTrustBundleProjection, PodCertificate podCertificate *core.PodCertificateProjection
core.VolumeResourceRequirements|Limits limits core.ResourceList, Requests requests core.ResourceList
core.VolumeSource|HostPath hostPath *core.HostPathVolumeSource, EmptyDir emptyDir *core.EmptyDirVolumeSource, GCEPersistentDisk gcePersistentDisk *core.GCEPersistentDiskVolumeSource, AWSElasticBlockStore awsElasticBlockStore *core.AWSElasticBlockStoreVolumeSource, GitRepo gitRepo *core.GitRepoVolumeSource, Secret secret *core.SecretVolumeSource, NFS nfs *core.NFSVolumeSource, ISCSI iscsi *core.ISCSIVolumeSource, Glusterfs glusterfs *core.GlusterfsVolumeSource, PersistentVolumeClaim persistentVolumeClaim *core.PersistentVolumeClaimVolumeSource, RBD rbd *core.RBDVolumeSource, Quobyte quobyte *core.QuobyteVolumeSource, FlexVolume flexVolume *core.FlexVolumeSource, Cinder cinder *core.CinderVolumeSource, CephFS cephfs *core.CephFSVolumeSource, Flocker flocker *core.FlockerVolumeSource, DownwardAPI downwardAPI *core.DownwardAPIVolumeSource, FC fc *core.FCVolumeSource, AzureFile azureFile *core.AzureFileVolumeSource, ConfigMap configMap *core.ConfigMapVolumeSource, VsphereVolume vsphereVolume *core.VsphereVirtualDiskVolumeSource, AzureDisk azureDisk *core.AzureDiskVolumeSource, PhotonPersistentDisk photonPersistentDisk *core.PhotonPersistentDiskVolumeSource, Projected projected *core.ProjectedVolumeSource, PortworxVolume portworxVolume *core.PortworxVolumeSource, ScaleIO scaleIO *core.ScaleIOVolumeSource, StorageOS storageos *core.StorageOSVolumeSource, CSI csi *core.CSIVolumeSource, Ephemeral ephemeral *core.EphemeralVolumeSource, Image image *core.ImageVolumeSource
core.VsphereVirtualDiskVolumeSource|VolumePath volumePath string, FSType fsType string, StoragePolicyName storagePolicyName string, StoragePolicyID storagePolicyID string
core.WeightedPodAffinityTerm|Weight weight int32, PodAffinityTerm podAffinityTerm core.PodAffinityTerm
core.WindowsSecurityContextOptions|GMSACredentialSpecName gmsaCredentialSpecName *string, GMSACredentialSpec gmsaCredentialSpec *string, RunAsUserName runAsUserName *string, HostProcess hostProcess *bool
v1.LabelSelector|MatchLabels matchLabels map[string]string, MatchExpressions matchExpressions []v1.LabelSelectorRequirement
v1.LabelSelectorRequirement|Key key string, Operator operator v1.LabelSelectorOperator=string, Values values []string
v1.ObjectMeta|Name name string, GenerateName generateName string, Namespace namespace string, SelfLink selfLink string, UID uid types.UID=string, ResourceVersion resourceVersion string, Generation generation int64, CreationTimestamp creationTimestamp v1.Time, DeletionTimestamp deletionTimestamp *v1.Time, DeletionGracePeriodSeconds deletionGracePeriodSeconds *int64, Labels labels map[string]string, Annotations annotations map[string]string, OwnerReferences ownerReferences []v1.OwnerReference, Finalizers finalizers []string, ManagedFields managedFields []v1.ManagedFieldsEntry
v1.OwnerReference|APIVersion apiVersion string, Kind kind string, Name name string, UID uid types.UID=string, Controller controller *bool, BlockOwnerDeletion blockOwnerDeletion *bool
`;
