//! Parameters of delegated discoveries, as the interfaces of the guide have them (tables 4-3 and 4-9).

use callmodel::scp::{DiscoveryParameter, OAuth};
use rand::Rng;
use rand::rngs::SmallRng;

use super::locality_of;

/// Slices that consumers ask for.
const SLICES: u32 = 4;
/// Data networks that consumers ask for.
const NETWORKS: [&str; 4] = ["internet", "ims", "iot", "enterprise"];
/// Tracking areas that consumers are in.
const AREAS: u32 = 100;
/// Routing indicators of subscribers.
const INDICATORS: u32 = 100;
/// Services of PCFs that an AMF discovers together (N15).
const POLICIES: [&str; 2] = ["npcf-am-policy-control", "npcf-ue-policy-control"];

/// What a discovery is about.
pub(super) struct Asked<'a> {
    pub(super) service: &'a str,
    pub(super) consumer: u32,
    pub(super) subscriber: u32,
}

impl Asked<'_> {
    /// The header of a parameter; `None` where the subscriber has none: with an IPv6 prefix there is no domain of IPv4
    /// addresses.
    pub(super) fn parameter(
        &self,
        parameter: DiscoveryParameter,
        random: &mut SmallRng,
    ) -> Option<(&'static str, String)> {
        let mut one_of = |count: u32| random.random_range(0..count);
        // Every other subscriber has an IPv4 address.
        let has_ipv4 = self.subscriber.is_multiple_of(2);
        Some(match parameter {
            DiscoveryParameter::ServiceNames => {
                let services = match POLICIES.contains(&self.service) {
                    true => POLICIES.join(", "),
                    false => self.service.to_owned(),
                };
                ("3gpp-sbi-discovery-service-names", services)
            }
            DiscoveryParameter::Snssais => ("3gpp-sbi-discovery-snssais", slice(one_of(SLICES))),
            DiscoveryParameter::PreferredSnssais => {
                ("3gpp-sbi-discovery-preferred-snssais", slice(one_of(SLICES)))
            }
            DiscoveryParameter::Dnn => {
                let network = NETWORKS[self.subscriber as usize % NETWORKS.len()];
                ("3gpp-sbi-discovery-dnn", network.to_owned())
            }
            DiscoveryParameter::Tai => {
                let area = one_of(AREAS);
                let tai = format!(r#"{{"plmnId":{{"mcc":"001","mnc":"01"}},"tac":"{area:06x}"}}"#);
                ("3gpp-sbi-discovery-tai", tai)
            }
            DiscoveryParameter::PreferredLocality => {
                // Consumers of two sites.
                let locality = locality_of(self.consumer % 2);
                ("3gpp-sbi-discovery-preferred-locality", locality)
            }
            DiscoveryParameter::PreferredApiVersions => {
                let versions = format!(r#"{{"{}":"1.0.0"}}"#, self.service);
                ("3gpp-sbi-discovery-preferred-api-versions", versions)
            }
            DiscoveryParameter::Supi => {
                let supi = format!("imsi-00101{:010}", self.subscriber);
                ("3gpp-sbi-discovery-supi", supi)
            }
            DiscoveryParameter::DataSet => ("3gpp-sbi-discovery-data-set", "POLICY".to_owned()),
            DiscoveryParameter::RoutingIndicator => {
                let indicator = format!("{:04}", self.subscriber % INDICATORS);
                ("3gpp-sbi-discovery-routing-indicator", indicator)
            }
            DiscoveryParameter::UeIpv4Address if !has_ipv4 => {
                let [_, high, middle, low] = self.subscriber.to_be_bytes();
                let prefix = format!("2001:db8:{high:x}:{middle:02x}{low:02x}::/64");
                ("3gpp-sbi-discovery-ue-ipv6-prefix", prefix)
            }
            DiscoveryParameter::IpDomain if !has_ipv4 => return None,
            DiscoveryParameter::UeIpv4Address => {
                let [_, high, middle, low] = self.subscriber.to_be_bytes();
                let address = format!("10.{high}.{middle}.{low}");
                ("3gpp-sbi-discovery-ue-ipv4-address", address)
            }
            DiscoveryParameter::IpDomain => {
                let domain = format!("domain-{}", self.subscriber % 4);
                ("3gpp-sbi-discovery-ip-domain", domain)
            }
        })
    }
}

/// Slice and network of a consumer: with its id and type what its tokens depend on.
pub(super) fn of_requester(oauth: OAuth, random: &mut SmallRng) -> [(&'static str, String); 2] {
    let slices = slice(random.random_range(0..oauth.slices.max(1)));
    let mnc = 1 + random.random_range(0..oauth.plmns.max(1));
    [
        ("3gpp-sbi-discovery-requester-snssais", slices),
        (
            "3gpp-sbi-discovery-requester-plmn-list",
            format!(r#"[{{"mcc":"001","mnc":"{mnc:02}"}}]"#),
        ),
    ]
}

/// The list of one slice.
fn slice(number: u32) -> String {
    format!(r#"[{{"sst":1,"sd":"{number:06x}"}}]"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// TS 29.510 table 6.2.3.2.3.1-1: the domain goes with an IPv4 address.
    #[test]
    fn a_subscriber_has_an_address_of_one_kind() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut names = |subscriber| {
            let asked = Asked {
                service: "nbsf-management",
                consumer: 0,
                subscriber,
            };
            [DiscoveryParameter::UeIpv4Address, DiscoveryParameter::IpDomain]
                .into_iter()
                .filter_map(|parameter| asked.parameter(parameter, &mut random))
                .collect::<Vec<_>>()
        };
        let [four, six] = [names(2), names(0x0001_0203)];
        assert_eq!(four[0].0, "3gpp-sbi-discovery-ue-ipv4-address");
        assert_eq!(four[1].0, "3gpp-sbi-discovery-ip-domain");
        assert_eq!(
            six,
            [(
                "3gpp-sbi-discovery-ue-ipv6-prefix",
                "2001:db8:1:0203::/64".to_owned()
            )]
        );
    }
}
