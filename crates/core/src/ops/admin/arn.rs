//! The syntax of an IAM role's ARN.

/// Whether it is one, such as `arn:aws:iam::123456789012:role/path/name`. Whether the role exists is AWS's to say.
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html>
/// <https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateRole.html>
pub(super) fn is_role_arn(text: &str) -> bool {
    let Some((partition, rest)) = text.strip_prefix("arn:").and_then(|t| t.split_once(":iam::")) else {
        return false;
    };
    let Some((account, role)) = rest.split_once(":role") else {
        return false;
    };
    let Some((path, name)) = role.rsplit_once('/') else {
        return false;
    };
    let partition_fits = partition == "aws"
        || partition.strip_prefix("aws-").is_some_and(|p| {
            (1..=32).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
        });
    // the path is `/` or `/…/`, 512 characters at most; its first slash is what stands behind `role`
    let path_fits = path.len() < 512
        && (path.is_empty() || (path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic())));
    let name_fits = (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+=,.@_-".contains(&b));
    partition_fits
        && account.len() == 12
        && account.bytes().all(|b| b.is_ascii_digit())
        && path_fits
        && name_fits
}

#[cfg(test)]
mod tests {
    use super::is_role_arn;

    #[test]
    fn role_arns() {
        for good in [
            "arn:aws:iam::123456789012:role/newsroom",
            "arn:aws:iam::123456789012:role/desk/sport/reader@x",
            "arn:aws-cn:iam::123456789012:role/a",
            "arn:aws-us-gov:iam::123456789012:role/a",
        ] {
            assert!(is_role_arn(good), "{good}");
        }
        let long = format!("arn:aws:iam::123456789012:role/{}", "x".repeat(65));
        for bad in [
            "",
            "arn:aws:iam::123456789012:user/newsroom",
            "arn:aws:iam::123456789012:role/",
            "arn:aws:iam::123456789012:role",
            "arn:aws:iam::123456789012:rolex/a",
            "arn:aws:iam::12345678901:role/a",
            "arn:aws:iam::12345678901x:role/a",
            "arn:aws:iam:eu-west-1:123456789012:role/a",
            "arn:aws:sts::123456789012:assumed-role/a/b",
            "arn:azure:iam::123456789012:role/a",
            "arn:aws:iam::123456789012:role/a b",
            "arn:aws:iam::123456789012:role/é/b",
            " arn:aws:iam::123456789012:role/a",
            &long,
        ] {
            assert!(!is_role_arn(bad), "{bad}");
        }
    }
}
